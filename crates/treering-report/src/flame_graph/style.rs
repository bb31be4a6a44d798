//! The picture's style sheet: the page's colours, in light and in dark.

use crate::colour::{Fill, KINDS, WHOLE, ink_on};

/// The style sheet. Without `prefers-color-scheme`, as in print, the picture is light.
pub(super) fn sheet() -> String {
    let light = theme(["#ffffff", "#1d1b18", "#57524a"], |fill| fill.light);
    let dark = theme(["#191b1e", "#eceae6", "#b5b1a9"], |fill| fill.dark);
    format!("{BASE}{light}@media screen and (prefers-color-scheme:dark){{{dark}}}")
}

const BASE: &str = "text{font:12px ui-monospace,'SF Mono',Menlo,'DejaVu Sans Mono','Liberation Mono',monospace;\
font-variant-ligatures:none;white-space:pre;pointer-events:none}\
.head{font-weight:700}.share{text-anchor:end}.inlined path{fill:none;stroke-dasharray:3 2;stroke-opacity:.55}\
g:hover>rect{stroke-width:1.5}";

/// Ground, ink and paler ink of a theme, then its fills with the ink on them.
fn theme([ground, ink, pale]: [&str; 3], of: impl Fn(&Fill) -> &'static str) -> String {
    let mut sheet = format!(
        ".ground{{fill:{ground}}}.head{{fill:{ink}}}.fact{{fill:{pale}}}\
         g:hover>rect{{stroke:{ink}}}.inlined path{{stroke:{ink}}}"
    );
    for fill in KINDS.iter().chain([&WHOLE]) {
        let (class, colour) = (fill.class, of(fill));
        let (ink, has_room) = ink_on(colour);
        let opacity = if has_room { ".82" } else { "1" };
        sheet += &format!(
            ".{class} rect{{fill:{colour}}}.{class} text{{fill:{ink}}}.{class} .of{{fill-opacity:{opacity}}}"
        );
    }
    sheet
}
