//! Rust text with its comments and strings blanked out.
//!
//! The lexer distinguishes code, comments and the contents of strings. It handles nested block
//! comments, raw strings and lifetimes such as `'a`.

/// Returns the text with comments and the contents of literals blanked out, one ASCII byte per
/// character, so that lines and columns remain. O(length).
pub fn mask(text: &str) -> String {
    let mut lexer = Lexer { chars: text.chars().collect(), at: 0, code: String::new() };
    while let Some(c) = lexer.peek(0) {
        match (c, lexer.peek(1)) {
            ('/', Some('/')) => lexer.line_comment(),
            ('/', Some('*')) => lexer.block_comment(),
            ('"', _) => lexer.string(),
            ('\'', _) => lexer.quote(),
            ('r', Some('#' | '"')) => lexer.raw_string(),
            _ => lexer.take_code(),
        }
    }
    lexer.code
}

/// Returns whether this is a character of an identifier.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns the offsets of `needle` in `code` as a whole word: no identifier continues over either
/// of its ends.
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

struct Lexer {
    chars: Vec<char>,
    at: usize,
    code: String,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn advance(&mut self, shown: char) {
        let newline = self.peek(0) == Some('\n');
        self.code.push(if newline { '\n' } else { shown });
        self.at += 1;
    }

    fn take_code(&mut self) {
        let c = self.peek(0).unwrap_or(' ');
        self.advance(if c.is_ascii() { c } else { '_' });
    }

    fn blank(&mut self) {
        self.advance(' ');
    }

    fn line_comment(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.blank();
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while self.peek(0).is_some() {
            match (self.peek(0), self.peek(1)) {
                (Some('/'), Some('*')) => depth += 1,
                (Some('*'), Some('/')) => depth -= 1,
                _ => {
                    self.blank();
                    continue;
                }
            }
            self.blank();
            self.blank();
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        self.take_code();
        self.literal_up_to('"');
    }

    /// The rest of a literal with escapes, up to the quote that ends it.
    fn literal_up_to(&mut self, end: char) {
        while let Some(c) = self.peek(0) {
            if c == end {
                return self.take_code();
            }
            if c == '\\' {
                self.blank();
            }
            self.blank();
        }
    }

    /// `r"..."` and `r#"..."#`, or else the `r` of an identifier such as `r#type`.
    fn raw_string(&mut self) {
        let prefix: Vec<u8> = self.code.bytes().rev().take_while(|b| is_word(*b)).collect();
        let hashes = self.chars[self.at + 1..].iter().take_while(|c| **c == '#').count();
        let is_raw = matches!(prefix.as_slice(), b"" | b"b" | b"c");
        if !is_raw || self.peek(1 + hashes) != Some('"') {
            return self.take_code();
        }
        for _ in 0..hashes + 2 {
            self.take_code();
        }
        while self.peek(0).is_some() && !self.raw_string_ends(hashes) {
            self.blank();
        }
        for _ in 0..hashes + 1 {
            self.take_code();
        }
    }

    fn raw_string_ends(&self, hashes: usize) -> bool {
        self.peek(0) == Some('"') && (1..=hashes).all(|i| self.peek(i) == Some('#'))
    }

    /// A character literal, or the quote of a lifetime.
    fn quote(&mut self) {
        let is_literal = self.peek(1) == Some('\\') || self.peek(2) == Some('\'');
        self.take_code();
        if is_literal {
            self.literal_up_to('\'');
        }
    }
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
