//! `treering export --to svg`, `--to dot` and `--to csv`: files that other programs read.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use treering_testing::programs::{KNOWN_SHARES, RECURSION, installed};

use crate::session::{Session, program, words};
use crate::skip;

/// Text that no reader of pictures may take for its own language.
const HOSTILE: &str = r#"</text><script>alert(1)</script> "]] -- evil & &lt \N \l {x|y} %s"#;

fn with_stacks(stacks: &str) -> Session {
    let session = Session::new();
    std::fs::write(session.path("a.folded"), stacks).expect("the folder can be written");
    session
}

/// Runs a program on a text, which must succeed, and gives what it printed.
fn filtered(program: PathBuf, arguments: &[&str], text: &str) -> String {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut input = child.stdin.take().expect("it was piped");
    let text = text.to_owned();
    let writing = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    writing.join().expect("it was written").expect("it was read");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.is_empty(), "{said}");
    String::from_utf8(output.stdout).expect("it prints UTF-8")
}

#[test]
fn an_xml_reader_takes_names_for_names() {
    let session = with_stacks(&format!("main;{HOSTILE} 600\nmain;解析器 400\n"));
    let svg = session.output(&["export", "a.folded", "--to", "svg", "-o", "-"]);
    let Some(xmllint) = installed("xmllint") else { return skip("xmllint is not installed") };
    let scripts = "count(//*[local-name()='script' or local-name()='a' or @onload or @onclick])";
    assert_eq!(filtered(xmllint.clone(), &["--nonet", "--xpath", scripts, "-"], &svg).trim(), "0");
    let titles = filtered(xmllint, &["--nonet", "--xpath", "//*[local-name()='title']/text()", "-"], &svg);
    let titles = titles.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    assert!(titles.contains(&format!("{HOSTILE}\ntotal 60.0 %")), "{titles}");
    assert!(titles.contains("解析器\ntotal 40.0 %"), "{titles}");
}

#[test]
fn a_flame_graph_has_the_numbers_of_the_report() {
    let session = Session::new();
    session.record(&[], &program(&KNOWN_SHARES.build().expect("the compiler is installed"), &["300"]));
    session.output(&["export", "treering.trg", "--to", "svg"]);
    let svg = std::fs::read_to_string(session.path("treering.svg")).expect("it was written");
    let report = session.json("--tree", &["--min", "0", "--depth", "149"]);
    let run = report["run"]["run_cost"].as_f64().expect("it has a cost");
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for node in rows(&report) {
        let share = |key: &str| 100.0 * node[key].as_f64().unwrap_or(0.0) / run;
        let name = node["function"].as_str().expect("it has a name");
        let row = format!("{name} {:.1} {:.1}", share("total_cost"), share("self_cost"));
        *known.entry(row).or_default() += 1;
    }
    let drawn: Vec<String> = svg.split("<title>").skip(3).map(row_of).collect();
    assert!(drawn.len() >= 6, "{drawn:?}");
    for row in drawn {
        let count = known.get_mut(&row).unwrap_or_else(|| panic!("the report has no {row}"));
        *count = count.checked_sub(1).unwrap_or_else(|| panic!("{row} is drawn too often"));
    }
    // All that is left is too narrow.
    let left = known.into_iter().filter(|(_, count)| *count > 0);
    for (row, _) in left {
        let total: f64 = row.rsplit(' ').nth(1).and_then(|total| total.parse().ok()).expect("it has a total");
        assert!(total <= 100.0 / 1416.0 + 0.05, "{row} is not drawn");
    }
}

/// The nodes of a tree in JSON, however deep.
fn rows(value: &Value) -> Vec<&Value> {
    let mut all = Vec::new();
    let mut pending = vec![value];
    while let Some(next) = pending.pop() {
        match next {
            Value::Array(items) => pending.extend(items),
            Value::Object(fields) => {
                if fields.contains_key("function") && fields.contains_key("total_cost") {
                    all.push(next);
                }
                pending.extend(fields.values());
            }
            _ => {}
        }
    }
    all
}

/// Name, total and self of a title of a rectangle.
fn row_of(title: &str) -> String {
    let title = title.split("</title>").next().unwrap_or_default();
    let title = title.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let percent = |label: &str| {
        let line = title.lines().find_map(|line| line.strip_prefix(label)).expect("it has the number");
        line.split(' ').next().expect("it is not empty").to_owned()
    };
    format!("{} {} {}", title.lines().next().expect("it has a name"), percent("total "), percent("self "))
}

#[test]
fn only_the_selected_part_is_drawn_in_percents_of_the_run() {
    let session = with_stacks("main;work;copy 500\nmain;log 300\nmain;idle 200\n");
    let select = ["--ignore", "^idle$", "--hide", "^work$"];
    let svg = session.output(&[&["export", "a.folded", "--to", "svg", "-o", "-"], &select[..]].concat());
    assert!(svg.contains("<title>selected part\n80.0 %"), "{svg}");
    assert!(svg.contains("<title>copy\ntotal 50.0 %") && !svg.contains("<title>work"), "{svg}");
    assert!(svg.contains("80.0 % of the run"), "{svg}");
    let folded = session.output(&[&["export", "a.folded", "--to", "folded"], &select[..]].concat());
    let costs: u64 = folded
        .lines()
        .map(|line| {
            line.rsplit_once(' ').and_then(|(_, cost)| cost.parse::<u64>().ok()).expect("it has a cost")
        })
        .sum();
    assert!(folded.contains("main;copy ") && costs.is_multiple_of(800), "{folded}");
}

#[test]
fn graphviz_takes_names_for_names() {
    let session = Session::new();
    let name = HOSTILE.replace("&lt", "&lt;");
    let arc = |number: u32, name: &str| format!("cfn=({number}) {name}\ncalls=3 1\n1 500\n");
    let arcs = [arc(2, &name), arc(3, "解析器")].concat();
    let text = format!("events: Ir\nfn=(1) main\n1 100\n{arcs}fn=(2)\n1 500\nfn=(3)\n1 500\n");
    std::fs::write(session.path("a.callgrind"), text).expect("the folder can be written");
    let dot = session.output(&["export", "a.callgrind", "--to", "dot", "-o", "-"]);
    let Some(graphviz) = installed("dot") else { return skip("Graphviz is not installed") };
    let drawn = filtered(graphviz.clone(), &["-Tjson"], &dot);
    let drawn: Value = serde_json::from_str(&drawn).expect("Graphviz writes JSON");
    let nodes = drawn["objects"].as_array().expect("it has nodes");
    assert_eq!((nodes.len(), drawn["edges"].as_array().expect("it has arrows").len()), (3, 2));
    // The texts that are drawn, which is after escapes and entities were read.
    let svg = filtered(graphviz, &["-Tsvg"], &dot);
    let svg = svg.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#45;", "-");
    let svg = svg.replace("&#160;", " ").replace("&amp;", "&");
    assert!(svg.contains(&format!("xlink:title=\"{name}\"")), "{svg}");
    assert!(svg.contains("xlink:title=\"解析器\""), "{svg}");
}

#[test]
fn a_graph_says_what_it_leaves_out() {
    let stacks: String = (0..100).map(|at| format!("main;f{at} {}\n", 1000 + at)).collect();
    let session = with_stacks(&stacks);
    let outcome = session.run(&["export", "a.folded", "--to", "dot", "--max-nodes", "11"]);
    let told = "not drawn: 90 functions beyond the 11 largest, whose self costs are 89.6 % of the run";
    assert!(outcome.status.success() && outcome.stderr.contains(told), "{outcome:#?}");
    let dot = std::fs::read_to_string(session.path("a.dot")).expect("it was written");
    assert!(dot.contains(&format!("// picture   {told}")), "{dot}");
    assert_eq!(dot.lines().filter(|line| line.contains(" -> ")).count(), 10);
}

#[test]
fn estimated_totals_are_marked() {
    let Ok(recursion) = RECURSION.build() else { return skip("no compiler is installed") };
    let session = Session::new();
    let mut counted = words(&["count", "-q", "--"]);
    counted.extend(program(&recursion, &["5"]));
    if !session.run(&counted).status.success() {
        return skip("this machine refuses to trace");
    }
    let outcome = session.run(&["export", "treering.trg", "--to", "dot", "-o", "-"]);
    assert!(outcome.stderr.contains("estimated from calls"), "{outcome:#?}");
    let nodes = || outcome.stdout.lines().filter(|line| line.starts_with('f') && line.contains("\\lself "));
    assert!(nodes().count() > 2 && nodes().all(|line| line.contains("\\ltotal ~")), "{outcome:#?}");
    assert!(outcome.stdout.contains("~: apportioned by calls"), "{outcome:#?}");
    let refused = session.run(&["export", "treering.trg", "--to", "svg"]);
    assert!(refused.error().contains("no stacks") && refused.stderr.contains("--tree"), "{refused:#?}");
    assert!(!session.path("treering.svg").exists());
}

#[test]
fn pictures_of_ours_are_replaced_and_no_others() {
    let session = with_stacks("main;work 5\n");
    for format in ["svg", "dot"] {
        let output = format!("a.{format}");
        let export = ["export", "a.folded", "--to", format];
        std::fs::write(session.path(&output), "<svg/>").expect("it can be written");
        let refused = session.run(&export);
        assert!(refused.error().contains("is not a picture that Treering wrote"), "{refused:#?}");
        session.output(&[&export[..], &["--force"]].concat());
        session.output(&export);
    }
}

#[test]
fn options_of_other_formats_are_refused() {
    let session = with_stacks("main;work 5\n");
    for (format, option) in
        [("dot", "--width"), ("svg", "--max-nodes"), ("folded", "--depth"), ("pprof", "--min")]
    {
        let outcome = session.run(&["export", "a.folded", "--to", format, option, "400"]);
        let outcome = match option {
            "--min" => session.run(&["export", "a.folded", "--to", format, option, "4"]),
            _ => outcome,
        };
        assert!(outcome.error().contains(&format!("{option} is for --to ")), "{outcome:#?}");
        assert_eq!(outcome.shell_status(), 2);
    }
}

#[test]
fn nothing_to_draw_is_said() {
    let session = with_stacks("main;work 5\n");
    let outcome = session.run(&["export", "a.folded", "--to", "svg", "--ignore", "main"]);
    assert!(outcome.error().contains("nothing to draw"), "{outcome:#?}");
    let callgrind =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/formats/callgrind/plain.callgrind");
    let mut export = words(&["export", "--to", "svg", "-o", "-"]);
    export.push(callgrind.into());
    let outcome = session.run(&export);
    assert!(outcome.error().contains("no stacks") && outcome.stderr.contains("--to dot"), "{outcome:#?}");
}

/// Prints a table as JSON, read by Python's own reader.
const CSV_TO_JSON: &str =
    "import csv, json, sys; print(json.dumps(list(csv.DictReader(open(sys.argv[1], newline='')))))";

fn table(session: &Session, file: &str) -> Option<Vec<Value>> {
    session.output(&["export", file, "--to", "csv", "-o", "table.csv"]);
    let python = installed("python3")?;
    let output = Command::new(python).args(["-c", CSV_TO_JSON]).arg(session.path("table.csv")).output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("Python writes JSON")
}

#[test]
fn a_table_has_the_numbers_of_the_report() {
    let session = Session::new();
    session.record(&[], &program(&KNOWN_SHARES.build().expect("the compiler is installed"), &["300"]));
    let Some(rows) = table(&session, "treering.trg") else { return skip("python3 is not installed") };
    let report: Value = serde_json::from_str(&session.output(&["report", "--flat", "--json"])).expect("JSON");
    let metric = format!("{} (ns)", report["run"]["metric"].as_str().expect("a name"));
    let functions = report["functions"].as_array().expect("a list");
    assert_eq!(rows.len(), functions.len());
    for (row, function) in rows.iter().zip(functions) {
        assert_eq!(row["function"], function["function"]);
        let keys = [
            ("self", "self_cost"),
            ("total", "total_cost"),
            ("self low", "self_low"),
            ("total high", "total_high"),
        ];
        for (column, key) in keys {
            let written = row[format!("{column} {metric}")].as_str().expect("a field");
            assert_eq!(written.parse().ok(), function[key].as_u64(), "{column}: {row} {function}");
        }
        assert_eq!(row["calls"], "");
    }
}

#[test]
fn no_name_in_a_table_is_a_formula_or_ends_its_row() {
    let session = with_stacks("=cmd|' /C calc'!A0;a,\"b\" 600\n-[NSObject init];解析器 400\n");
    let Some(rows) = table(&session, "a.folded") else { return skip("python3 is not installed") };
    let names: Vec<_> = rows.iter().map(|row| row["function"].as_str().expect("a name")).collect();
    assert_eq!(names, ["a,\"b\"", "解析器", "'-[NSObject init]", "'=cmd|' /C calc'!A0"]);
    let outcome = session.run(&["export", "a.folded", "--to", "csv", "-o", "a.folded"]);
    assert_ne!(outcome.shell_status(), 0, "{outcome:#?}");
}
