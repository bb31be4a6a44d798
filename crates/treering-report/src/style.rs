//! What the place that shows a listing can do, and how cost is coloured.

use anstyle::{AnsiColor, Style as Ansi};

/// What the place that shows a listing can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Whether it takes colour. Colour only repeats what the numbers say.
    pub colour: bool,
    /// How many characters fit a line; nothing when lines may be of any length.
    pub width: Option<usize>,
}

/// Shares of the run from which on a function stands out, and much.
const WARM: f64 = 0.02;
const HOT: f64 = 0.10;

impl Style {
    /// `text` in the colour for a share of the run.
    pub(crate) fn heat(&self, share: f64, text: &str) -> String {
        let colour = match share {
            share if share >= HOT => Ansi::new().bold().fg_color(Some(AnsiColor::Red.into())),
            share if share >= WARM => Ansi::new().fg_color(Some(AnsiColor::Yellow.into())),
            _ => Ansi::new(),
        };
        self.paint(colour, text)
    }

    /// `text` as a title.
    pub(crate) fn bold(&self, text: &str) -> String {
        self.paint(Ansi::new().bold(), text)
    }

    /// `text` as something of less weight.
    pub(crate) fn dim(&self, text: &str) -> String {
        self.paint(Ansi::new().dimmed(), text)
    }

    fn paint(&self, style: Ansi, text: &str) -> String {
        if !self.colour || style == Ansi::new() || text.is_empty() {
            return text.to_owned();
        }
        format!("{style}{text}{style:#}")
    }

    /// `name` cut in the middle to what is left of a line after `used` characters. Some of it
    /// is always shown.
    pub(crate) fn fit(&self, used: usize, name: &str) -> String {
        const LEAST: usize = 16;
        match self.width {
            Some(width) => shorten(name, width.saturating_sub(used).max(LEAST)),
            None => name.to_owned(),
        }
    }
}

/// `name` with its middle left out, if it has more than `length` characters.
fn shorten(name: &str, length: usize) -> String {
    let count = name.chars().count();
    if count <= length {
        return name.to_owned();
    }
    let tail = length.saturating_sub(1) / 2;
    let head = length.saturating_sub(1) - tail;
    let start: String = name.chars().take(head).collect();
    let end: String = name.chars().skip(count - tail).collect();
    format!("{start}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_lose_their_middle() {
        let style = Style { colour: false, width: Some(30) };
        assert_eq!(style.fit(10, "a_name_of_twenty_char"), "a_name_of_…enty_char");
        assert_eq!(style.fit(10, "a_name_of_twenty_cha"), "a_name_of_twenty_cha");
        assert_eq!(Style::default().fit(10, &"x".repeat(500)).len(), 500);
    }

    #[test]
    fn colour_is_left_out_when_it_is_not_taken() {
        assert_eq!(Style::default().heat(0.9, "hot"), "hot");
        let style = Style { colour: true, width: None };
        assert_eq!(style.heat(0.9, "hot"), "\u{1b}[1m\u{1b}[31mhot\u{1b}[0m");
        assert_eq!(style.heat(0.001, "cold"), "cold");
    }
}
