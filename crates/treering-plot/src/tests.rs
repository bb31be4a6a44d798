use crate::{
    Change, Commit, GrowthPanel, GrowthPlot, HistoryPlot, Level, MemoryPlot, MemorySeries, Panel,
    ParameterPlot, Point, Series, Step, Unit, growth_svg, history_svg, memory_svg, parameter_gnuplot,
    parameter_svg,
};

fn series(name: &str, factor: f64, error: Option<f64>) -> Series {
    let point = |x: f64| {
        let y = x * x * factor;
        Point { x, y, bounds: error.map(|error| (y * (1.0 - error), y * (1.0 + error))) }
    };
    Series { name: name.to_owned(), points: [250.0, 500.0, 1000.0, 2000.0].map(point).to_vec() }
}

fn parameter_plot() -> ParameterPlot {
    let change = |x, change, half: f64, is_certain| Change {
        x,
        change,
        bounds: Some((change - half, change + half)),
        is_certain,
    };
    ParameterPlot {
        title: "memory +49 % at n = 2,000 & <more>".to_owned(),
        subtitle: "15 rounds".to_owned(),
        parameter: "n".to_owned(),
        panels: vec![
            Panel {
                name: "CPU time".to_owned(),
                unit: Unit::Nanoseconds,
                series: vec![series("5.4.8", 60.0, Some(0.03)), series("gc's <400>", 61.0, Some(0.03))],
                changes: vec![
                    change(250.0, 0.03, 0.01, true),
                    change(500.0, -0.04, 0.01, true),
                    change(1000.0, 0.01, 0.03, false),
                ],
                floor: 0.02,
            },
            Panel {
                name: "Peak memory".to_owned(),
                unit: Unit::Bytes,
                series: vec![series("5.4.8", 3.0, None)],
                changes: Vec::new(),
                floor: 0.02,
            },
        ],
    }
}

fn history_plot() -> HistoryPlot {
    let commit = |(at, value): (usize, Option<f64>)| Commit { label: format!("2024-0{}", at + 1), value };
    HistoryPlot {
        title: "6 commits: +5.7 % in f".to_owned(),
        subtitle: "instructions".to_owned(),
        unit: Unit::Count,
        commits: [Some(476.5e6), Some(476.6e6), None, Some(503.6e6), Some(503.5e6), Some(480.9e6)]
            .into_iter()
            .enumerate()
            .map(commit)
            .collect(),
        levels: vec![Level { from: 0, to: 1, value: 476.5e6 }, Level { from: 3, to: 4, value: 503.5e6 }],
        steps: vec![
            Step { at: 3, change: 0.0568, lines: vec!["63d68bd6, 2023-11-29".to_owned()] },
            Step { at: 5, change: -0.0564, lines: vec!["94b503d9, 2024-06-10".to_owned()] },
        ],
    }
}

fn growth_plot() -> GrowthPlot {
    let sizes = [250.0, 500.0, 1000.0, 2000.0];
    let points = |factor: f64, power: f64| sizes.map(|size: f64| (size, factor * size.powf(power))).to_vec();
    let panel = |name: &str, form: &str, points: Vec<(f64, f64)>, is_culprit| GrowthPanel {
        name: name.to_owned(),
        note: "self".to_owned(),
        form: form.to_owned(),
        slope: Some(2.0),
        shares: (0.735, 0.96),
        foretold: vec![points[3], (20_000.0, points[3].1 * 100.0)],
        points,
        is_culprit,
    };
    GrowthPlot {
        title: "tinsert grows with n²".to_owned(),
        subtitle: "exact".to_owned(),
        run: points(2000.0, 1.8),
        unit: Unit::Count,
        foretold: 20_000.0,
        panels: vec![
            panel("tinsert", "n²", points(900.0, 2.0), true),
            panel("sort", "n log n", points(90.0, 1.1), false),
        ],
    }
}

fn memory_plot() -> MemoryPlot {
    let of = |name: &str, steps: &[(f64, f64)]| MemorySeries { name: name.to_owned(), steps: steps.to_vec() };
    MemoryPlot {
        title: "Peak memory 13.2 → 19.7 MB".to_owned(),
        subtitle: "one run of each".to_owned(),
        series: vec![
            of("5.4.8", &[(0.0, 0.0), (48e6, 13.2e6), (50e6, 12.5e6), (250e6, 12.6e6)]),
            of("gcpause 400", &[(0.0, 0.0), (40e6, 10e6), (253e6, 19.7e6), (258e6, 18.2e6)]),
        ],
    }
}

fn pictures() -> [String; 4] {
    [
        parameter_svg(&parameter_plot()),
        history_svg(&history_plot()),
        growth_svg(&growth_plot()),
        memory_svg(&memory_plot()),
    ]
}

fn count(svg: &str, text: &str) -> usize {
    svg.matches(text).count()
}

/// A colour that the style does not replace would be lost on one of both pages.
#[test]
fn the_style_replaces_every_colour_on_dark_pages() {
    for svg in pictures() {
        let (style, drawn) = svg.split_once("</style>").expect("it has a style");
        for part in drawn.split(['"', ' ']).filter(|part| part.starts_with('#')) {
            assert!(style.contains(&format!("[fill=\"{part}\"]")), "{part}");
        }
        assert!(style.contains("prefers-color-scheme:dark"), "{style}");
        let names = drawn.matches('<').count();
        assert_eq!(drawn.matches('>').count(), names, "its marks are complete");
    }
}

#[test]
fn names_and_titles_are_text_and_no_marks() {
    let svg = parameter_svg(&parameter_plot());
    assert!(svg.contains("memory +49 % at n = 2,000 &amp; &lt;more&gt;"), "{svg}");
    assert!(svg.contains("&lt;400&gt;") && !svg.contains("<400>"), "{svg}");
}

#[test]
fn values_with_bounds_have_error_bars_and_changes_have_the_colour_of_their_sign() {
    let svg = parameter_svg(&parameter_plot());
    let lines = |colour: &str| {
        let of = format!("stroke=\"{colour}\" stroke-width=\"2\"");
        svg.lines().filter(|line| line.contains("<polyline") && line.contains(&of)).count()
    };
    // Two series of which the first is in the second panel as well: four bars of three lines each, and the curves.
    assert_eq!((lines("#D08A1F"), lines("#0A6C74")), (4 * 3 + 2, 4 * 3 + 1));
    assert_eq!((lines("#9C4A00"), lines("#1F5AA6"), lines("#A5A093")), (3, 3, 3));
    let alone = ParameterPlot { panels: parameter_plot().panels.split_off(1), ..parameter_plot() };
    assert_eq!(count(&parameter_svg(&alone), "change; grey"), 0);
}

#[test]
fn commits_that_were_not_built_are_crossed_and_steps_say_their_sign() {
    let svg = history_svg(&history_plot());
    assert_eq!((count(&svg, "×"), count(&svg, "▲ +5.68 %"), count(&svg, "▼ −5.64 %")), (1, 1, 1), "{svg}");
    assert!(svg.contains("not from 0"));
}

/// Nothing to show, one point, and values that no axis holds: a picture all the same.
#[test]
fn odd_data_makes_a_picture() {
    let point = |x, y| Point { x, y, bounds: None };
    for points in
        [vec![], vec![point(1.0, 1.0)], vec![point(0.0, 0.0), point(1.0, f64::NAN), point(2.0, -3.0)]]
    {
        let mut plot = parameter_plot();
        plot.panels[0].series = vec![Series { name: String::new(), points }];
        assert!(parameter_svg(&plot).ends_with("</svg>\n"));
    }
    let empty = HistoryPlot { commits: Vec::new(), levels: Vec::new(), steps: Vec::new(), ..history_plot() };
    assert!(history_svg(&empty).ends_with("</svg>\n"));
    assert!(memory_svg(&MemoryPlot { series: Vec::new(), ..memory_plot() }).ends_with("</svg>\n"));
    assert!(
        growth_svg(&GrowthPlot { panels: Vec::new(), run: Vec::new(), ..growth_plot() })
            .ends_with("</svg>\n")
    );
}

#[test]
#[expect(clippy::print_stderr, reason = "tests say what they skipped")]
fn gnuplot_draws_its_data() {
    let mut plot = parameter_plot();
    plot.parameter = "input_size^2".to_owned();
    let script = parameter_gnuplot(&plot);
    assert!(script.contains("\n250 3750000 3637500 3862500 3812500 "), "{script}");
    let run = std::process::Command::new("gnuplot")
        .args(["-e", "set terminal dumb"])
        .arg("-")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn();
    let Ok(mut gnuplot) = run else {
        eprintln!("skipped: gnuplot is not installed");
        return;
    };
    let mut input = gnuplot.stdin.take().expect("it is piped");
    std::io::Write::write_all(&mut input, script.as_bytes()).expect("gnuplot reads it");
    drop(input);
    let ended = gnuplot.wait_with_output().expect("it ends");
    let (drawn, errors) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success() && errors.is_empty(), "{errors}");
    assert!(drawn.contains("input_size^2"), "a name is no mark-up: {drawn}");
    assert!(drawn.contains("gc's <400>") && drawn.contains("Peak memory, bytes"), "{drawn}");
}

/// 0 and −5 have no place on a logarithmic axis, where they would stand with the least value.
#[test]
fn values_that_are_not_positive_stand_on_an_even_axis() {
    let mut plot = parameter_plot();
    let values = [-5.0, 0.0, 5.0, 995.0];
    plot.panels[1].series[0].points.iter_mut().zip(values).for_each(|(point, y)| point.y = y);
    plot.panels.remove(0);
    let svg = parameter_svg(&plot);
    let heights: Vec<f64> = circles(&svg);
    assert!(heights.windows(2).all(|pair| pair[0] > pair[1]), "{heights:?}");
    // Evenly: a step of five is half of a step of ten.
    assert!((heights[0] - 2.0 * heights[1] + heights[2]).abs() <= 1.0, "{heights:?}");
    let script = parameter_gnuplot(&plot);
    assert!(script.contains("\nset logscale x\nunset logscale y\n"), "{script}");
    assert!(parameter_gnuplot(&parameter_plot()).contains("\nset logscale x\nset logscale y\n"));
}

/// How far below the top the marks of the first series stand, without their halos.
fn circles(svg: &str) -> Vec<f64> {
    let marks = svg.split("<circle ").skip(1).filter(|mark| mark.contains("fill=\"none\""));
    let height = |mark: &str| mark.split("cy=\"").nth(1)?.split('"').next()?.parse().ok();
    marks.filter_map(height).collect()
}
