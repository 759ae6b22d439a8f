//! Puts pictures of plots beside each other, for the book.

use super::canvas;
use std::fmt::Write;

/// Returns one picture of all `pictures`, each of which is a title and an SVG.
pub fn beside(label: &str, pictures: &[(String, String)]) -> String {
    const WIDTH: usize = 580;
    const HEIGHT: usize = 340;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {HEIGHT}\" role=\"img\" \
         aria-label=\"{label}\">\n<style>\n{}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"var(--paper)\"/>\n",
        WIDTH * pictures.len(),
        canvas::STYLE,
    );
    for (at, (title, picture)) in pictures.iter().enumerate() {
        let left = WIDTH * at + 10;
        let sized = picture.replacen(
            "<svg ",
            &format!("<svg x=\"{left}\" y=\"44\" width=\"560\" height=\"290\" "),
            1,
        );
        // Writing to a string cannot fail.
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"28\" font-family=\"sans-serif\" font-size=\"17\" \
             font-weight=\"bold\" fill=\"var(--ink)\">{title}</text>\n{sized}",
            left + 12
        );
    }
    svg.push_str("</svg>\n");
    svg
}
