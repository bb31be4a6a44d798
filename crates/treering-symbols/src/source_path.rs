//! Paths of source files.

/// The path without `.`, `..` and doubled slashes, so that one file has one name however the
/// compiler was told of it.
///
/// Works on the text alone: the file system it was written on may be another one. A `..` behind
/// a symbolic link is therefore resolved as if the link were a directory.
pub(crate) fn normalise(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|&last| last != "..") => {
                parts.pop();
            }
            ".." if path.starts_with('/') => {}
            _ => parts.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

/// `path` as seen from `directory`.
pub(crate) fn join(directory: &str, path: &str) -> String {
    if path.starts_with('/') || directory.is_empty() {
        path.to_owned()
    } else {
        format!("{directory}/{path}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_a_path_gives_the_same() {
        for path in ["/a/b/c.c", "/a//b/./c.c", "/a/x/../b/c.c", "/../a/b/y/z/../../c.c"] {
            assert_eq!(normalise(path), "/a/b/c.c");
        }
        assert_eq!(normalise("../lib/./x.c"), "../lib/x.c");
        assert_eq!(normalise("../../x.c"), "../../x.c");
        assert_eq!(normalise(""), "");
    }

    #[test]
    fn relative_paths_start_from_the_directory_of_compilation() {
        assert_eq!(join("/build", "src/a.c"), "/build/src/a.c");
        assert_eq!(join("/build", "/usr/include/a.h"), "/usr/include/a.h");
        assert_eq!(join("", "a.c"), "a.c");
    }
}
