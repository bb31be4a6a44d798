//! `treering man`.

use crate::session::Session;

#[test]
fn the_manual_page_tells_of_every_subcommand() {
    let page = Session::new().output(&["man"]);
    assert!(page.contains(".TH"), "it is a page for man: {page}");
    for name in ["record", "report", "export", "import", "dump", "merge", "completions"] {
        assert!(page.contains(name), "nothing about {name}");
    }
}
