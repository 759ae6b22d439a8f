//! Parts that all pages of this program share: an HTML document that loads no other file, in the
//! report's style, and plots with their titles.

use super::draw::{self, Part, canvas};
use crate::studies::World;
use crate::studies::plot::Plot;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The content policy: the page is allowed to load no file and to run no script.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

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
                style { (PreEscaped(canvas::STYLE)) (PreEscaped(include_str!("page.css"))) }
            }
            body { (body) }
        }
    };
    html.into_string()
}

/// Returns a table with these rows, which scrolls where it is too wide. `class` is a class of the
/// style sheet, and `label` is the table's name for screen readers.
pub fn table(class: Option<&str>, label: Option<&str>, header: &[&str], rows: &Markup) -> Markup {
    html! {
        div.scroll {
            table class=[class] aria-label=[label] {
                thead { tr { @for name in header { th scope="col" { (name) } } } }
                tbody { (rows) }
            }
        }
    }
}

/// Returns a plot as inline SVG, below its title.
pub fn picture(world: World, plot: &Plot) -> Markup {
    group(&[(world, plot)])
}

pub(super) fn group(parts: &[Part<'_>]) -> Markup {
    let title = parts.first().map_or("", |(_, plot)| plot.title.as_str());
    html! { figure { figcaption { (title) } (PreEscaped(draw::draw(parts))) } }
}
