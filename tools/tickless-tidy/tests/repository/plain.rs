//! Plain English: counts phrases that readers have to decode, in comments, documents and names.
//!
//! The phrases leave out the actor ("whoever"), give code a mind ("believes"), or describe by
//! reference ("the same"). Quoted text does not count. The number of phrases in the repository may
//! not exceed [`LIMIT`].

use crate::source::SourceFile;

/// The most phrases that the repository may have. Lower it when phrases have been removed.
pub const LIMIT: usize = 111;

/// Phrases as words with `|` between alternatives. `^` is the start of a line, `$` its end. `!`
/// comes before words that must not be in that place.
const PHRASES: &[&str] = &[
    "who|whoever|whom",
    "somebody|someone|nobody|anybody|anyone|everybody|everyone",
    "^ the same",
    "^ and the same",
    "^|.|;|: that|those|it|they of|that|which",
    "is|are|was|were to be|have|go|come|fire|run|wait|wake|look|take|make|stay|say|do",
    "is|are|was|were not to be|have|go|come|fire|run|wait|wake|look|take|make|stay|say|do",
    "say|says|said|tell|tells|told so|whether|what|when|where|why|how|which|that|of|it|them|nobody",
    "hear|hears|heard|believe|believes|believed",
    "is news",
    "is good for",
    "lie|lies down",
    "get|gets up",
    "think|thinks again",
    "stand|stands in|there|still",
    "the|a|its present !state|version|value",
    "put|puts|putting off",
    "put|puts|putting it|them|timers off",
    "put|puts|putting a timer off",
    "is|are|was|were over",
    "meanwhile",
    "anew",
    ", no more . $",
    ", nothing else|more . $",
    ", if any do|does|is|are . $",
    ", as any|before . $",
    ", as it is . $",
];

/// Phrases that do not belong in a name. The words of a name are its parts between `_` or capitals.
const NAMES: &[&str] = &[
    "believe|news|usually|usual|anew|whoever|somebody|nobody|heard|hear|told|elsewhere|knows",
    "looked|comes|goes|says|vouch|mover|gone",
    "tell of",
    "have it",
    "way out",
    "put|puts|putting off",
    "look after",
    "good for",
    "from now",
    "nothing is",
];

const DECLARATIONS: &[&str] = &["fn", "struct", "enum", "trait", "mod", "type", "const", "static"];

/// Documentation consists of statements: a line that begins with one of these words and ends in `?`
/// is a question, and a finding.
const QUESTIONS: &[&str] =
    &["is", "are", "does", "do", "has", "have", "can", "may", "must", "was", "were", "did", "will"];

/// Returns every phrase that was found if there are more than `limit`, and nothing otherwise.
pub fn phrases(files: &[SourceFile], limit: usize) -> Vec<String> {
    let breaches: Vec<String> = files.iter().flat_map(phrases_of).collect();
    if breaches.len() > limit { breaches } else { Vec::new() }
}

fn phrases_of(file: &SourceFile) -> Vec<String> {
    // The sources in `foreign/` keep the style of the libraries that the benchmark compares.
    if file.path.contains("/foreign/") {
        return Vec::new();
    }
    let mut breaches = Vec::new();
    let mut report = |line, what: &str, instead| {
        breaches.push(file.breach(line, &format!("plain English: `{what}`"), instead));
    };
    for (line, text) in prose(file) {
        let words = words(&text);
        for phrase in PHRASES.iter().filter(|phrase| has_phrase(&words, phrase)) {
            report(line, phrase, "name the actor and state what happens");
        }
        let asks = words.get(1).is_some_and(|word| QUESTIONS.contains(&word.as_str()));
        if asks && text.ends_with('?') && !text.contains('.') {
            report(line, "?", "write a statement: Returns whether ...");
        }
    }
    for (line, code) in (1..).zip(file.code.lines()) {
        let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
        while let Some(word) = words.next() {
            if DECLARATIONS.contains(&word)
                && let Some(name) = words.next()
                && NAMES.iter().any(|phrase| has_phrase(&parts(name), phrase))
            {
                report(line, name, "use the field's term");
            }
        }
    }
    breaches
}

/// Returns the lines of comments and documents, with their line numbers and without quoted text.
fn prose(file: &SourceFile) -> Vec<(usize, String)> {
    let is_document = file.path.ends_with(".md");
    let has_hashes = [".sh", ".py", ".toml"].iter().any(|end| file.path.ends_with(end));
    let mut code = file.code.lines();
    let mut is_fenced = false;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(&file.lines) {
        let code = code.next().unwrap_or_default().trim_end();
        let text = if file.path.ends_with(".rs") {
            // In `line`, the text after the code is a comment, or part of a multi-line string.
            let behind = line.chars().skip(code.chars().count()).collect::<String>();
            behind.trim_start().strip_prefix("//").map(str::to_string)
        } else if is_document {
            is_fenced ^= line.trim_start().starts_with("```");
            (!is_fenced && !line.starts_with("|--")).then(|| line.clone())
        } else {
            let comment = line.trim_start().strip_prefix('#').filter(|_| has_hashes);
            comment.filter(|text| !text.starts_with('!')).map(str::to_string)
        };
        if let Some(text) = text {
            let text = text.trim_start_matches(|c: char| !c.is_alphabetic() && c != '`');
            found.push((number, without_quotes(text)));
        }
    }
    found
}

fn without_quotes(text: &str) -> String {
    let mut out = String::new();
    let mut quote = None;
    for c in text.trim_end().chars() {
        match quote {
            Some(end) if c == end => quote = None,
            Some(_) => continue,
            None if c == '`' || c == '"' => quote = Some(c),
            None => {}
        }
        out.push(c);
    }
    out
}

/// Returns a text's words in lower case and the punctuation between them, between `^` and `$`.
fn words(text: &str) -> Vec<String> {
    let mut words = vec!["^".to_string()];
    let mut word = String::new();
    for c in text.chars().chain([' ']) {
        if c.is_alphanumeric() || c == '_' {
            word.extend(c.to_lowercase());
            continue;
        }
        words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
        words.extend((!c.is_whitespace()).then(|| c.to_string()));
    }
    words.push("$".to_string());
    words
}

/// Returns the words in a name in snake case or camel case.
fn parts(name: &str) -> Vec<String> {
    let mut spaced = String::new();
    for c in name.chars() {
        if c.is_uppercase() && spaced.ends_with(char::is_lowercase) {
            spaced.push(' ');
        }
        spaced.push(if c == '_' { ' ' } else { c.to_ascii_lowercase() });
    }
    spaced.split_whitespace().map(str::to_string).collect()
}

fn has_phrase(words: &[String], phrase: &str) -> bool {
    let phrase: Vec<&str> = phrase.split(' ').collect();
    let is_word = |(word, choice): (&String, &&str)| match choice.strip_prefix('!') {
        Some(others) => others.split('|').all(|other| other != word),
        None => choice.split('|').any(|one| one == word),
    };
    words.windows(phrase.len()).any(|window| window.iter().zip(&phrase).all(is_word))
}

#[test]
fn phrases_are_found_in_comments_documents_scripts_and_names() {
    let comments = "/// Wakes who sleeps.\nlet a = \"who\"; // put off\n\
        // `who`, \"meanwhile\"\n//! The same.\n// in the present state\n\
        // At the present time.\n/// Is it armed?\n/// It is over.\nlet who = 1;";
    let names = "fn put_off() {}\nstruct WayOut;\nlet gone = 1;\nmod gone;\nfn push_out() {}\n";
    for (path, text, lines) in [
        ("a.rs", comments, &[1, 2, 4, 6, 7, 8][..]),
        ("a.rs", names, &[1, 2, 4]),
        ("a.md", "- Nobody waits.\n```\nnobody\n```\nand, anew\n", &[1, 5]),
        ("a.sh", "#!/bin/who\n# It stands there.\necho anew\n", &[2]),
        ("a.txt", "nobody\n", &[]),
    ] {
        let found = phrases(&[SourceFile::new(path, text)], 0);
        let line = |breach: &String| breach.split(':').nth(1)?.parse::<usize>().ok();
        let found: Vec<usize> = found.iter().filter_map(line).collect();
        assert_eq!(found, lines, "{path}: {text}");
    }
}

#[test]
fn phrases_up_to_the_limit_are_allowed() {
    let files = [SourceFile::new("a.md", "anew\nmeanwhile\n")];
    assert_eq!((phrases(&files, 2).len(), phrases(&files, 1).len()), (0, 2));
}
