//! What pages of this program have in common: a document that needs nothing but itself, in the
//! report's style, and plots with their titles.

use super::draw::{self, Part, colour};
use crate::studies::World;
use crate::studies::plot::Plot;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::io;

/// Nothing may be loaded from anywhere, and nothing may run.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// A whole page with this title and body.
pub fn document(title: &str, body: &Markup) -> String {
    let html = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(colour::STYLE)) (PreEscaped(include_str!("page.css"))) }
            }
            body { (body) }
        }
    };
    html.into_string()
}

/// A plot as inline SVG, below its title.
///
/// # Errors
///
/// What the drawing returns.
pub fn picture(world: World, plot: &Plot) -> io::Result<Markup> {
    group(&[(world, plot)])
}

/// Draws the plots of one name, of both worlds, as one SVG.
pub(super) fn group(parts: &[Part<'_>]) -> io::Result<Markup> {
    let svg = draw::draw(parts)?;
    let title = parts.first().map_or("", |(_, plot)| plot.title.as_str());
    Ok(html! { figure { figcaption { (title) } (PreEscaped(svg)) } })
}
