//! Reads the live file of the test's own process.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::path::{Path, PathBuf};

use treering_events::{Header, Node, Thread, View};

/// The live file of this process, and its place.
pub(crate) struct Live {
    path: PathBuf,
}

impl Live {
    /// Records from now on into a file of its own.
    pub(crate) fn record(name: &str, options: treering_runtime::Options) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.{}.trg", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let output = Some(path.clone());
        treering_runtime::set_profiler(treering_runtime::Options { output, ..options });
        Self { path }
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.path).expect("the live file")
    }

    /// The header as it is now.
    pub(crate) fn header(&self) -> Header {
        *View::new(&self.bytes()).expect("a live file").header()
    }

    /// All nodes of a function as they are now, with the names of their callers, outermost first,
    /// joined by `/`, and their threads.
    pub(crate) fn nodes(&self, name: &str) -> Vec<(String, Node, Thread)> {
        let bytes = self.bytes();
        let view = View::new(&bytes).expect("a live file");
        let mut found = Vec::new();
        for (_, thread) in view.threads() {
            let root = view.node(thread.root).expect("a root");
            visit(&view, &root, "", &mut |callers, node| {
                if name_of(&view, node.function) == name {
                    found.push((callers.to_owned(), node, thread));
                }
            });
        }
        found
    }

    /// The only node of a function.
    pub(crate) fn node(&self, name: &str) -> Node {
        let nodes = self.nodes(name);
        assert_eq!(nodes.len(), 1, "nodes of {name}");
        nodes[0].1
    }

    /// The file and line of a function.
    pub(crate) fn place(&self, name: &str) -> (String, u32) {
        let bytes = self.bytes();
        let view = View::new(&bytes).expect("a live file");
        let (_, found) = view
            .functions()
            .find(|(_, known)| view.text(known.name) == name.as_bytes())
            .expect("the function");
        (String::from_utf8_lossy(view.text(found.file)).into_owned(), found.line)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn visit(view: &View, node: &Node, callers: &str, found: &mut impl FnMut(&str, Node)) {
    let own = format!("{callers}/{}", name_of(view, node.function));
    for (_, child) in view.children(node) {
        found(&own, child);
        visit(view, &child, &own, found);
    }
}

fn name_of(view: &View, function: u32) -> String {
    let found = view.functions().find(|(_, known)| known.id == function);
    found.map(|(_, known)| String::from_utf8_lossy(view.text(known.name)).into_owned()).unwrap_or_default()
}
