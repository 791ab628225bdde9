//! Tables that fit the terminal, and are complete without one.

use crate::present::colour::Paint;
use crate::present::text::{cut, one_line, width};

/// The space between columns.
const GAP: usize = 2;
/// The minimum width of a column that is narrowed for the last one.
const NARROW: usize = 12;

/// Rows under headings; the last column gets the remaining width.
#[derive(Debug)]
pub(crate) struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(headings: [&str; N]) -> Self {
        Self::with(headings.into_iter().map(str::to_owned).collect())
    }

    pub(crate) fn with(headings: Vec<String>) -> Self {
        Self { headings, rows: Vec::new() }
    }

    /// Adds a row; its cells become one line each.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| one_line(&cell)).collect());
    }

    /// The table, cut to a width if there is one. Empty columns are left out.
    pub(crate) fn render(&self, limit: Option<usize>, paint: Paint) -> String {
        let full = self.widths();
        let used: Vec<_> = (0..full.len()).filter(|column| full[*column] > 0).collect();
        let widths: Vec<_> =
            used.iter().map(|column| full[*column].max(width(&self.headings[*column]))).collect();
        let widths = match limit {
            Some(limit) => fitted(widths, limit),
            None => widths,
        };
        let line = |cells: &[String], style: &dyn Fn(usize, &str) -> String| {
            let mut line = String::new();
            for (place, column) in used.iter().enumerate() {
                let cell = cells.get(*column).map_or("", String::as_str);
                let cell = if limit.is_some() { cut(cell, widths[place]) } else { cell.into() };
                line += &style(place, &cell);
                if place + 1 < used.len() {
                    line += &" ".repeat(widths[place] - width(&cell) + GAP);
                }
            }
            line.truncate(line.trim_end().len());
            line.push('\n');
            line
        };
        let mut text = line(&self.headings, &|_, cell| paint.faint(cell));
        for row in &self.rows {
            let first =
                |place, cell: &str| if place == 0 { paint.bold(cell) } else { cell.to_owned() };
            text += &line(row, &first);
        }
        text
    }

    fn widths(&self) -> Vec<usize> {
        let widest = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max()
        };
        (0..self.headings.len()).map(|column| widest(column).unwrap_or(0)).collect()
    }
}

/// Widths that fit: the widest column is narrowed first, none below the minimum.
fn fitted(mut widths: Vec<usize>, limit: usize) -> Vec<usize> {
    let room = limit.saturating_sub(GAP * widths.len().saturating_sub(1));
    while widths.iter().sum::<usize>() > room {
        let Some(widest) = (0..widths.len()).rev().max_by_key(|column| widths[*column]) else {
            break;
        };
        if widths[widest] <= NARROW {
            // Too many columns for this terminal: a long line is better than an unreadable one.
            break;
        }
        widths[widest] -= 1;
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["NAME", "TYPE", "DESCRIPTION"]);
        table.row(["日本".to_owned(), String::new(), "wide letters\nin two lines".to_owned()]);
        table.row([
            "status".to_owned(),
            String::new(),
            "how many ports are free, and who is here".to_owned(),
        ]);
        table
    }

    #[test]
    fn where_there_is_no_terminal_nothing_is_cut() {
        insta::assert_snapshot!(table().render(None, Paint::PLAIN), @"
        NAME    DESCRIPTION
        日本    wide letters in two lines
        status  how many ports are free, and who is here
        ");
    }

    #[test]
    fn a_terminal_is_not_overrun() {
        let text = table().render(Some(30), Paint::PLAIN);
        assert!(text.lines().all(|line| width(line) <= 30), "{text}");
        insta::assert_snapshot!(text, @"
        NAME    DESCRIPTION
        日本    wide letters in two l…
        status  how many ports are fr…
        ");
    }

    #[test]
    fn many_columns_stay_readable() {
        assert_eq!(fitted(vec![40, 40, 40], 20), [12, 12, 12]);
        assert_eq!(fitted(vec![5, 50], 40), [5, 33]);
    }
}
