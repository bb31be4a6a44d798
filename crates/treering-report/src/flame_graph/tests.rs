use treering_profile::MetricId;

use super::*;

fn draw(stacks: &str, canvas: &Canvas) -> Picture {
    let profile = treering_testing::stacks(stacks);
    let basis = Basis::of(&profile, MetricId::new(0));
    flame_graph_svg(&profile, &basis, canvas)
}

/// Name, left end and width of every rectangle in a graph of 1000 pixels.
fn rectangles(picture: &Picture) -> Vec<(String, f64, f64)> {
    let number = |text: &str, key: &str| -> f64 {
        let rest = text.split_once(&format!(" {key}=\"")).expect("it has the attribute").1;
        rest.split('"').next().and_then(|digits| digits.parse().ok()).expect("it is a number")
    };
    let lines = picture.text.lines().skip_while(|line| !line.contains("<title>whole program")).peekable();
    let text = lines.collect::<Vec<_>>().join("\n");
    let groups = text.split("<g class=").skip(1);
    groups
        .map(|group| {
            let name = group.split_once("<title>").expect("it has a title").1;
            let name = name.split(['\n', '<']).next().unwrap_or_default().to_owned();
            (name, number(group, "x") - MARGIN, number(group, "width"))
        })
        .collect()
}

const WIDE: Canvas = Canvas { width: 1024, rows: 150 };

#[test]
fn rectangles_are_as_wide_as_their_cost_and_stand_below_their_callers() {
    let picture = draw("main;work;copy 500\n main;log 300\n exit 200", &WIDE);
    let expected = [
        ("whole program", 0.0, 999.0),
        ("main", 0.0, 799.0),
        ("work", 0.0, 499.0),
        ("copy", 0.0, 499.0),
        ("log", 500.0, 299.0),
        ("exit", 800.0, 199.0),
    ];
    let expected = expected.map(|(name, x, width)| (name.to_owned(), x, width));
    assert_eq!(rectangles(&picture), expected);
    assert!(picture.left_out.is_empty(), "{:?}", picture.left_out);
}

#[test]
fn rectangles_narrower_than_a_pixel_are_counted() {
    let picture = draw("main;work 9990\n main;tiny 5\n main;small;inner 5", &WIDE);
    let names: Vec<_> = rectangles(&picture).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["whole program", "main", "work"]);
    let told = "not drawn: 2 pieces narrower than a pixel, with all that they called 0.1 % of the run";
    assert_eq!(picture.left_out, [told]);
    assert!(picture.text.contains(told));
}

#[test]
fn deep_stacks_end_at_the_last_row_and_it_is_said() {
    let deep = format!("{}leaf 100", "f;".repeat(100_000));
    let picture = draw(&deep, &Canvas { width: 1024, rows: 10 });
    assert_eq!(rectangles(&picture).len(), 11);
    let told = "not drawn: 1 piece deeper than 10 rows, with all that they called 100.0 % of the run";
    assert_eq!(picture.left_out, [told]);
}

#[test]
fn the_numbers_of_a_rectangle_are_in_its_title() {
    let picture = draw("main;work 60\n main 40", &WIDE);
    let told =
        "<title>work\ntotal 60.0 % [50.2, 69.1], 60.000 ms\nself 60.0 % [50.2, 69.1], 60.000 ms</title>";
    assert!(picture.text.contains(told), "{}", picture.text);
}

#[test]
fn names_are_text() {
    let hostile = "</text><script>alert(1)</script>&\"'\u{1b}]0;x\u{7}\u{ffff}";
    let picture = draw(&format!("main;{hostile} 10"), &WIDE);
    assert!(!picture.text.contains("<script") && !picture.text.contains(['\u{1b}', '\u{7}', '\u{ffff}']));
    assert!(picture.text.contains("&lt;/text&gt;&lt;script&gt;alert(1)"), "{}", picture.text);
}

#[test]
fn texts_fit_their_rectangles() {
    for name in [
        "ink::parser::Parser<char>::expression(int, char)",
        "a_function_with_a_long_name",
        "解析器::表达式::很长的名字",
    ] {
        for columns in 0..40 {
            assert!(fit_width(name, columns).width() <= columns, "{name} in {columns}");
        }
    }
    assert_eq!(fit_width("解析器", 6), "解析器");
    assert_eq!(fit_width("main", 4), "main");
}
