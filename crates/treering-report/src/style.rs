//! The abilities of the place that shows a listing, and the colours of costs.

use anstyle::{AnsiColor, Style as Ansi};

use crate::name::{self, cut};

/// The abilities of the place that shows a listing.
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
    pub fn bold(&self, text: &str) -> String {
        self.paint(Ansi::new().bold(), text)
    }

    /// `text` as something of less weight.
    pub fn dim(&self, text: &str) -> String {
        self.paint(Ansi::new().dimmed(), text)
    }

    fn paint(&self, style: Ansi, text: &str) -> String {
        if !self.colour || style == Ansi::new() || text.is_empty() {
            return text.to_owned();
        }
        format!("{style}{text}{style:#}")
    }

    /// `text` cut in the middle to what is left of a line after `used` characters. Some of it
    /// is always shown.
    pub(crate) fn fit(&self, used: usize, text: &str) -> String {
        match self.room(used) {
            Some(room) => cut(text, room),
            None => text.to_owned(),
        }
    }

    /// A function's name, shortened to what is left of a line by its own structure.
    pub(crate) fn fit_name(&self, used: usize, name: &str) -> String {
        match self.room(used) {
            Some(room) => name::fit(name, room),
            None => name.to_owned(),
        }
    }

    /// A text in lines that fit, broken between words; those after the first are indented.
    pub fn wrap(&self, text: &str, indent: usize) -> String {
        let Some(room) = self.room(indent) else { return text.to_owned() };
        let mut wrapped = String::with_capacity(text.len());
        let mut used = 0;
        for word in text.split(' ') {
            let length = word.chars().count();
            if used > 0 && used + 1 + length > room {
                wrapped += &format!("\n{}", " ".repeat(indent));
                used = 0;
            } else if !wrapped.is_empty() {
                wrapped.push(' ');
                used += 1;
            }
            wrapped += word;
            used += length;
        }
        wrapped
    }

    /// Several lines, each in lines that fit.
    pub(crate) fn wrap_lines(&self, text: &str) -> String {
        text.split('\n').map(|line| self.wrap(line, 0)).collect::<Vec<_>>().join("\n")
    }

    /// How many characters are left of a line after `used`; some always are. Nothing where lines may
    /// be of any length.
    pub(crate) fn room(&self, used: usize) -> Option<usize> {
        const LEAST: usize = 8;
        self.width.map(|width| width.saturating_sub(used).max(LEAST))
    }
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
    fn long_texts_are_broken_between_words() {
        let style = Style { colour: false, width: Some(20) };
        assert_eq!(style.wrap("one two three four", 10), "one two\n          three four");
        assert_eq!(style.wrap("word_that_is_too_long is", 10), "word_that_is_too_long\n          is");
        assert_eq!(Style::default().wrap("one two three four", 10), "one two three four");
    }

    #[test]
    fn colour_is_left_out_when_it_is_not_taken() {
        assert_eq!(Style::default().heat(0.9, "hot"), "hot");
        let style = Style { colour: true, width: None };
        assert_eq!(style.heat(0.9, "hot"), "\u{1b}[1m\u{1b}[31mhot\u{1b}[0m");
        assert_eq!(style.heat(0.001, "cold"), "cold");
    }
}
