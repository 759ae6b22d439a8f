//! Rust text with its comments and strings blanked out.

use proc_macro2::{Span, TokenStream, TokenTree};

/// Returns the text with comments and the contents of literals blanked out, one ASCII byte per
/// character, so that lines and columns remain. Text that is not Rust is blanked out. O(length).
pub fn mask(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let ends = chars.iter().enumerate().filter(|(_, c)| **c == '\n').map(|(at, _)| at + 1);
    let lines = [0].into_iter().chain(ends).collect();
    let blank = |c: &char| if *c == '\n' { b'\n' } else { b' ' };
    let mut mask = Mask { code: chars.iter().map(blank).collect(), chars, lines };
    mask.show(text.parse().unwrap_or_default());
    String::from_utf8(mask.code).unwrap_or_default()
}

/// A text, the index at which each line begins, and the text's code, with everything else blank.
struct Mask {
    chars: Vec<char>,
    lines: Vec<usize>,
    code: Vec<u8>,
}

impl Mask {
    /// Copies the tokens of the code to the output, which is blank at first.
    fn show(&mut self, tokens: TokenStream) {
        for token in tokens {
            let (from, to) = self.places(token.span());
            // A documentation comment, which the parser returns as tokens of an attribute.
            if self.chars[from..to].starts_with(&['/', '/'])
                || self.chars[from..to].starts_with(&['/', '*'])
            {
                continue;
            }
            match token {
                TokenTree::Group(group) => {
                    for span in [group.span_open(), group.span_close()] {
                        let (from, to) = self.places(span);
                        self.show_between(from, to);
                    }
                    self.show(group.stream());
                }
                TokenTree::Literal(_) => {
                    let is_quote = |c: &char| matches!(c, '"' | '\'');
                    let literal = &self.chars[from..to];
                    let begin = literal.iter().position(is_quote).map(|at| from + at + 1);
                    let end = literal.iter().rposition(is_quote).map(|at| from + at);
                    self.show_between(from, begin.unwrap_or(to));
                    self.show_between(end.unwrap_or(to), to);
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => self.show_between(from, to),
            }
        }
    }

    fn places(&self, span: Span) -> (usize, usize) {
        let [from, to] =
            [span.start(), span.end()].map(|place| self.lines[place.line - 1] + place.column);
        (from, to)
    }

    fn show_between(&mut self, from: usize, to: usize) {
        for at in from..to {
            self.code[at] = u8::try_from(self.chars[at]).ok().filter(u8::is_ascii).unwrap_or(b'_');
        }
    }
}

/// Returns whether this is a character of an identifier.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns the offsets at which `needle` occurs in `code` as a whole word, and not as a part of a
/// longer identifier.
pub fn find_words(code: &str, needle: &str) -> Vec<usize> {
    let bytes = code.as_bytes();
    let touches = |edge: Option<u8>, next: Option<&u8>| {
        edge.is_some_and(is_word) && next.is_some_and(|b| is_word(*b))
    };
    code.match_indices(needle)
        .map(|(start, _)| start)
        .filter(|&start| {
            let before = start.checked_sub(1).and_then(|i| bytes.get(i));
            let after = bytes.get(start + needle.len());
            !touches(needle.bytes().next(), before) && !touches(needle.bytes().last(), after)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        mask(text)
    }

    #[test]
    fn comments_and_strings_are_blanked() {
        assert_eq!(code("a(\"x.y()\"); // b()"), "a(\"     \");       ");
        assert_eq!(code("/* a /* b */ c */d"), "                 d");
        assert_eq!(code(r#""a\"b" c"#), "\"    \" c");
    }

    #[test]
    fn raw_strings_end_at_their_own_hashes() {
        assert_eq!(code("r#\"a\"b\"# c"), "r#\"   \"# c");
        assert_eq!(code("br\"\\\" c"), "br\" \" c");
        assert_eq!(code("r#type + for\"x\""), "r#type + for\" \"");
    }

    #[test]
    fn characters_and_lifetimes_are_distinguished() {
        assert_eq!(code("'{' '\\'' '\"' x"), "' ' '  ' ' ' x");
        assert_eq!(code("fn f<'a>(x: &'a str) {}"), "fn f<'a>(x: &'a str) {}");
    }

    #[test]
    fn lines_and_columns_remain() {
        let text = "a\n\"µ\n\" // é\nb";
        assert_eq!(code(text).chars().count(), text.chars().count());
        assert_eq!(code(text).lines().count(), text.lines().count());
    }

    #[test]
    fn find_words_finds_whole_words() {
        assert_eq!(find_words("unsafe unsafe_code", "unsafe"), [0]);
        assert_eq!(find_words("eprintln!() println!()", "println!"), [12]);
        assert_eq!(find_words("x.unwrap() x.unwrap_or(1)", ".unwrap()"), [1]);
    }
}
