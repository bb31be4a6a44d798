//! Octave as a person uses it: in a terminal, with the commands of the package.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::octave::{evaluate, octave};
use crate::skip;

/// Octave in a terminal of its own, which `script` gives it.
struct Terminal {
    child: Child,
    keyboard: ChildStdin,
    screen: Arc<Mutex<String>>,
    /// The screen at the last look.
    seen: usize,
}

const PROMPT: &str = "ready> ";

impl Terminal {
    fn open(folder: &Path) -> Self {
        let mut command = Command::new("script");
        command.args(["--quiet", "--flush", "--return", "--command"]);
        // In the shell's place: an interrupt is Octave's alone, and so is the exit status.
        command.arg("exec octave-cli --norc --quiet --interactive --no-line-editing").arg("/dev/null");
        command.env("TERM", "dumb").current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let keyboard = child.stdin.take().expect("piped");
        let mut output = child.stdout.take().expect("piped");
        let screen = Arc::new(Mutex::new(String::new()));
        let shown = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..count]).replace('\r', "");
                shown.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
            }
        });
        let mut terminal = Self { child, keyboard, screen, seen: 0 };
        // Typed text is shown too, so the prompt must not be in it.
        let (start, end) = PROMPT.split_at(2);
        terminal.keys(&format!("PS1 (['{start}' '{end}']); PS2 (''); PAGER ('cat');\n"));
        terminal.wait_for(PROMPT);
        terminal
    }

    fn keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("it reads");
    }

    /// Waits until a text is shown, and returns all that was shown since the last one.
    fn wait_for(&mut self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let fresh = &screen[self.seen..];
            if let Some(at) = fresh.find(text) {
                let end = at + text.len();
                self.seen += end;
                return fresh[..end].to_owned();
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "{text:?} is not in {screen}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Types a line; what it shows until the next prompt.
    fn line(&mut self, line: &str) -> String {
        self.keys(&format!("{line}\n"));
        self.wait_for(&format!("{line}\n"));
        self.wait_for(PROMPT)
    }

    fn close(mut self) {
        self.keys("exit (0)\n");
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }
}

/// A folder with the library and some functions; nothing where there is no Octave or terminal.
fn folder(test: &str) -> Option<PathBuf> {
    if Command::new("script").arg("--version").output().is_err() {
        skip("there is no script");
        return None;
    }
    let folder = octave(test)?;
    let spin = "function spin ()\n  global turns\n  unwind_protect\n    while true\n      turns += 1;\n      turn (turns);\n      if (turns == 200) puts (\"spinning\\n\"); fflush (stdout); end\n    end\n  unwind_protect_cleanup\n    cleaned ();\n  end_unwind_protect\nend\n";
    let files = [
        ("spin.m", spin),
        ("turn.m", "function r = turn (x)\n  r = x + 1;\nend\n"),
        ("cleaned.m", "function cleaned ()\nend\n"),
        ("outer.m", "function r = outer ()\n  r = 0;\n  for k = 1:20 r += inner (k); end\nend\n"),
        ("inner.m", "function r = inner (k)\n  r = sum (sqrt (1:k));\nend\n"),
    ];
    files.iter().for_each(|(name, text)| std::fs::write(folder.join(name), text).expect("written"));
    Some(folder)
}

/// Puts the commands of the package on the load path.
fn load_package() -> String {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hooks/octave/inst");
    let package = package.canonicalize().expect("the package").display().to_string();
    format!(
        "warning ('off', 'Octave:shadowed-function'); addpath ('{package}'); addpath ('{package}/takeover');"
    )
}

#[test]
fn an_interrupt_leaves_an_exact_and_balanced_profile() {
    let Some(folder) = folder("interrupt") else { return };
    let mut terminal = Terminal::open(&folder);
    terminal.line(&load_package());
    terminal.line("global turns; turns = 0;");
    terminal.line("profile on graph");
    terminal.keys("spin ()\n");
    terminal.wait_for("spinning\n");
    terminal.keys("\x03");
    terminal.wait_for(PROMPT);
    terminal.line("inner (3);");
    let shown = terminal.line("profile info");
    let graph = terminal.line(
        "S = treering ('info'); name = @(at) S.FunctionTable(at).FunctionName; for f = S.FunctionTable' printf ('calls %s %d\\n', f.FunctionName, f.NumCalls); end, for a = S.Arcs' printf ('arc %s %s %d\\n', name (a.Caller), name (a.Callee), a.NumCalls); end, printf ('turns %d\\n', turns);",
    );
    terminal.close();
    let number = |start: &str| -> u64 {
        let line = graph.lines().find_map(|line| line.strip_prefix(start));
        line.and_then(|rest| rest.trim().parse().ok()).unwrap_or_else(|| panic!("{start} in {graph}"))
    };
    let turns = number("turns ");
    // It may have come between a turn's count and its call.
    assert!(turns >= 200 && turns - number("calls turn ") <= 1, "{graph}");
    assert_eq!(number("arc spin turn "), number("calls turn "), "{graph}");
    assert_eq!(
        (number("calls spin "), number("arc spin cleaned "), number("calls inner ")),
        (1, 1, 1),
        "{graph}"
    );
    // The time behind it belongs to no function: the loop was left.
    assert!(
        !graph
            .lines()
            .any(|line| line.starts_with("arc") && line.contains(" inner ") && !line.contains("arc inner ")),
        "{graph}"
    );
    assert!(shown.contains("cumulative") && shown.contains("call graph"), "{shown}");
    let row = shown.lines().find(|line| line.ends_with(" turn")).unwrap_or_else(|| panic!("{shown}"));
    assert!(row.split_whitespace().any(|word| word.parse() == Ok(number("calls turn "))), "{shown}");
}

#[test]
fn profexplore_walks_through_our_profile() {
    let Some(folder) = folder("explore") else { return };
    let mut terminal = Terminal::open(&folder);
    terminal.line(&load_package());
    terminal.line("profile on graph");
    terminal.line("outer ();");
    terminal.line("profile off");
    terminal.keys("profexplore (profile ('info'))\n");
    let top = terminal.wait_for("profexplore> ");
    assert!(top.lines().any(|line| line.trim().starts_with("1) outer: 1 calls")), "{top}");
    terminal.keys("1\n");
    let below = terminal.wait_for("profexplore> ");
    assert!(below.lines().any(|line| line.trim().starts_with("1) inner: 20 calls")), "{below}");
    terminal.keys("1\n");
    let inner = terminal.wait_for("profexplore> ");
    assert!(inner.contains("sum: 20 calls") && inner.contains("sqrt: 20 calls"), "{inner}");
    terminal.keys("exit\n");
    terminal.wait_for(PROMPT);
    let table = terminal.line("profshow (profile ('info'))");
    assert!(table.contains("inner") && table.contains("20"), "{table}");
    terminal.close();
}

#[test]
fn the_structure_of_a_profile_is_that_of_octave() {
    let Some(folder) = folder("structure") else { return };
    let describe = "
        function text = shape (S)
          text = sprintf ('%s %s %s', class (S), mat2str (size (S, 2)), strjoin (fieldnames (S)', ' '));
        end
        function show (T)
          disp (shape (T)); disp (shape (T.FunctionTable)); disp (shape (T.Hierarchical));
          row = T.FunctionTable(strcmp ({T.FunctionTable.FunctionName}, 'inner'));
          top = T.Hierarchical(strcmp ({T.FunctionTable([T.Hierarchical.Index]).FunctionName}, 'outer'));
          below = top.Children(strcmp ({T.FunctionTable([top.Children.Index]).FunctionName}, 'inner'));
          disp (shape (top.Children)); disp (size (below.Children(1).Children));
          for values = {row, top, below}
            for field = fieldnames (values{1})'
              value = values{1}.(field{1});
              is_time = any (strfind (field{1}, 'Time'));
              if (is_time || isstruct (value)) printf ('%s %s\\n', field{1}, class (value));
              elseif (any (strcmp (field{1}, {'Parents', 'Children'}))) printf ('%s %s\\n', field{1}, strjoin (sort ({T.FunctionTable(value).FunctionName}), ' '));
              elseif (strcmp (field{1}, 'Index')) printf ('%s %s\\n', field{1}, T.FunctionTable(value).FunctionName);
              else printf ('%s %s\\n', field{1}, disp (value));
              end
            end
          end
        end";
    let own = format!(
        "1;{describe}\nprofile on; outer (); profile off; T = profile ('info');\nT.FunctionTable = T.FunctionTable; show (T);"
    );
    let ours = format!(
        "1;{describe}\n{}\nprofile on graph -operators; outer (); profile off; show (profile ('info'));",
        load_package()
    );
    let (own, ours) = (evaluate(&folder, &own), evaluate(&folder, &ours));
    assert!(own.contains("FunctionTable Hierarchical") && own.contains("NumCalls 20"), "{own}");
    assert_eq!(ours, own);
}
