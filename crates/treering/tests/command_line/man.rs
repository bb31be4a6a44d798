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

/// The page of `bench` named one that could not be printed.
#[test]
fn every_page_that_a_page_names_can_be_printed() {
    let session = Session::new();
    let named = |page: &str| -> Vec<String> {
        let lines = page.lines().filter_map(|line| line.strip_prefix("treering")?.strip_suffix("(1)"));
        lines.map(|rest| rest.replace("\\-", "-").trim_start_matches('-').to_owned()).collect()
    };
    let commands = named(&session.output(&["man"]));
    assert!(commands.len() > 20, "{commands:?}");
    let mut below = Vec::new();
    for command in commands.iter().filter(|command| *command != "help") {
        let page = session.output(&["man", command]);
        let each = named(&page).into_iter();
        below.extend(
            each.filter_map(|name| Some((command, name.strip_prefix(&format!("{command}-"))?.to_owned()))),
        );
    }
    assert!(below.iter().any(|(_, name)| name == "scale"), "{below:?}");
    for (command, name) in below.iter().filter(|(_, name)| name != "help") {
        let page = session.output(&["man", command, name]);
        assert!(page.contains(&format!("treering\\-{command}\\-{name}")), "{page}");
    }
    let outcome = session.run(&["man", "bench", "fast"]);
    assert_eq!(outcome.status.code(), Some(1));
    assert_eq!(
        outcome.stderr,
        "error: fast: no such subcommand\nhint: they are listed by: treering bench --help\n"
    );
}
