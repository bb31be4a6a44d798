//! Local files that may be copied into a page.
//!
//! A profile names the source files that its lines are in. It may have come by mail, and its page may go by
//! mail: a forged one that named private files would carry their text away. So a page takes only files that
//! are source code by name and place.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

/// Endings of source files, of all languages whose programs Treering profiles or that are compiled to such.
const ENDINGS: &[&str] = &[
    "ada", "adb", "ads", "asm", "c", "c++", "cc", "cp", "cpp", "cs", "cu", "cuh", "cxx", "d", "def", "erl",
    "f", "f03", "f08", "f77", "f90", "f95", "for", "go", "h", "h++", "hh", "hpp", "hs", "hxx", "i", "ii",
    "inc", "inl", "ipp", "java", "jl", "js", "kt", "l", "ll", "lua", "m", "ml", "mm", "nim", "p", "pas",
    "php", "pl", "plt", "pm", "prolog", "pxd", "py", "pyx", "r", "rb", "rs", "s", "scala", "swift", "tcc",
    "tcl", "ts", "txx", "v", "vala", "y", "yy", "zig",
];

/// Folders of the system that hold no source code.
const NEVER: &[&str] = &["/dev", "/etc", "/proc", "/run", "/sys", "/var/lib", "/var/log", "/var/run"];

/// Hidden folders that hold source code of others: those of cargo, rustup and local packs.
const HIDDEN_SOURCES: &[&[&str]] = &[
    &[".cargo", "registry", "src"],
    &[".cargo", "git", "checkouts"],
    &[".rustup", "toolchains"],
    &[".local", "share"],
    &[".local", "lib"],
];

/// The file that a path leads to, with all links followed, if it is source code by its name and its place.
pub fn source_file(path: &Path) -> Option<PathBuf> {
    if !path.is_absolute() {
        return None;
    }
    let real = path.canonicalize().ok()?;
    // The name of a link counts as well as its target.
    let is_source = [path, &real].into_iter().all(|path| is_source_by_name(path) && !is_private(path));
    is_source.then_some(real)
}

fn is_source_by_name(path: &Path) -> bool {
    match path.extension().and_then(OsStr::to_str) {
        Some(ending) => ENDINGS.contains(&ending.to_ascii_lowercase().as_str()),
        // Headers of the C++ library have none.
        None => path.components().any(|part| part.as_os_str() == "include"),
    }
}

fn is_private(path: &Path) -> bool {
    let parts: Vec<&OsStr> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect();
    let is_hidden = |at: usize| parts[at].as_encoded_bytes().starts_with(b".");
    let holds_sources = |at: usize| {
        HIDDEN_SOURCES.iter().any(|known| {
            parts.len() > at + known.len()
                && known.iter().zip(&parts[at..]).all(|(known, part)| *part == *known)
        })
    };
    let temporary = is_temporary(path, std::env::var_os("TMPDIR"), std::env::var_os("HOME"));
    NEVER.iter().any(|folder| path.starts_with(folder))
        // Builds in temporary folders often have hidden names.
        || (!temporary && (0..parts.len()).any(|at| is_hidden(at) && !holds_sources(at)))
}

/// Whether a file is in a folder for temporary files. The folder that `TMPDIR` names does not count if it
/// holds the home directory, or if the name is empty, which stands for everything: hidden files there are
/// not to be read.
fn is_temporary(path: &Path, tmpdir: Option<OsString>, home: Option<OsString>) -> bool {
    let real = |path: OsString| {
        let path = PathBuf::from(path);
        path.canonicalize().unwrap_or(path)
    };
    let named = tmpdir.map(real).filter(|tmpdir| tmpdir.is_absolute());
    let home = home.filter(|home| !home.is_empty()).map(real);
    let named = named.filter(|tmpdir| home.is_some_and(|home| !home.starts_with(tmpdir)));
    named.is_some_and(|named| path.starts_with(named))
        || path.starts_with("/tmp")
        || path.starts_with("/var/tmp")
}

/// Whether bytes are text: other files may have the name of a source file.
pub fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0) && std::str::from_utf8(bytes).map_or_else(|_| mostly_ascii(bytes), |_| true)
}

/// Sources in old encodings have few letters outside of ASCII.
fn mostly_ascii(bytes: &[u8]) -> bool {
    bytes.iter().filter(|byte| byte.is_ascii()).count() * 10 >= bytes.len() * 9
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a path is taken that exists under its own name.
    fn taken(path: &str) -> bool {
        let path = Path::new(path);
        is_source_by_name(path) && !is_private(path)
    }

    #[test]
    fn source_code_is_taken() {
        for path in [
            "/home/me/work/solve.cpp",
            "/home/me/.cargo/registry/src/index.crates.io-1/serde-1.0/src/lib.rs",
            "/home/me/.rustup/toolchains/stable/lib/rustlib/src/rust/library/core/src/num/mod.rs",
            "/usr/include/c++/12/vector",
            "/usr/share/octave/8.4.0/m/linear-algebra/null.m",
            "/tmp/queens.PL",
        ] {
            assert!(taken(path), "{path}");
        }
    }

    #[test]
    fn private_files_are_not_taken() {
        for path in [
            "/home/me/.ssh/id_ed25519",
            "/home/me/.ssh/config.c",
            "/home/me/.cargo/credentials.toml",
            "/home/me/.config/token.js",
            "/home/me/project/.env",
            "/home/me/project/.git/hooks/a.py",
            "/home/me/passwords.txt",
            "/home/me/diary",
            "/etc/shadow",
            "/etc/python3/secret.py",
            "/proc/self/environ",
            "/home/me/.local/share/",
        ] {
            assert!(!taken(path), "{path}");
        }
        assert_eq!(source_file(Path::new("relative.c")), None);
    }

    #[test]
    fn a_folder_that_holds_the_home_directory_is_not_temporary() {
        let hidden = Path::new("/home/me/.secret/key.c");
        let is = |tmpdir: &str| is_temporary(hidden, Some(tmpdir.into()), Some("/home/me".into()));
        for tmpdir in ["", ".", "/", "/home", "/home/me", "/home/me/", "/home/me/work"] {
            assert!(!is(tmpdir), "{tmpdir}");
        }
        assert!(!is_temporary(hidden, Some("/home/me".into()), None));
        assert!(!is_temporary(hidden, Some("/home/me".into()), Some("".into())));
        assert!(is("/home/me/.secret"), "it is chosen as such");
        assert!(is_temporary(Path::new("/tmp/.build/a.c"), None, None));
    }

    #[test]
    fn data_under_the_name_of_source_code_is_no_text() {
        assert!(is_text(b"int main() { return 0; }\n"));
        assert!(is_text("// größer\n".as_bytes()));
        assert!(is_text(b"% gr\xf6\xdfer, in an old encoding, which has few such letters\n"));
        assert!(!is_text(b"\x7fELF\0\0"));
        assert!(!is_text(&[0xff; 100]));
    }
}
