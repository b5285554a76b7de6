//! The terminal page and what stands behind it. To accept a change: `ASSAY_BLESS=1 cargo test -p assay-report`, then
//! read the difference.

mod common;

use std::path::Path;

use assay_measure::{FamilyRow, Protocol, ProtocolRow, WidthSummary};
use assay_report::{Bundle, text::columns};

fn compare(name: &str, got: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name);
    if std::env::var_os("ASSAY_BLESS").is_some() {
        std::fs::write(&path, got).unwrap();
        return;
    }
    let want = std::fs::read_to_string(&path).unwrap_or_default();
    for (n, (w, g)) in want.lines().zip(got.lines()).enumerate() {
        assert_eq!(g, w, "{name}:{}: ASSAY_BLESS=1 accepts", n + 1);
    }
    assert_eq!(got.lines().count(), want.lines().count(), "{name}: ASSAY_BLESS=1 accepts\n{got}");
}

#[test]
fn the_pages_are_as_in_testdata() {
    let b = common::bundle();
    compare("page-80.txt", &b.page(80));
    compare("page-120.txt", &b.page(120));
    compare("tables-80.txt", &b.tables(80));
    compare("details-80.txt", &b.details(80));
    compare("suite-80.txt", &b.suites[1].page(80));
    compare("suite.toml", &b.suites[1].toml());
}

#[test]
fn every_snapshot_has_its_test() {
    if std::env::var_os("ASSAY_BLESS").is_some() {
        return; // they are being written
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(
        names,
        ["details-80.txt", "page-120.txt", "page-80.txt", "suite-80.txt", "suite.toml", "tables-80.txt"]
    );
}

#[test]
fn the_first_screen_is_short() {
    let page = common::bundle().page(80);
    let screen = page.split("\nMost surprising survivors").next().unwrap();
    let lines = screen.lines().count();
    assert!(lines <= 53, "{lines} lines with a failed baseline and every caveat");
}

fn widths(b: &Bundle) {
    for width in 40..140 {
        for (what, text) in [
            ("page", b.page(width)),
            ("tables", b.tables(width)),
            ("details", b.details(width)),
            ("suite", b.suites[2].page(width)),
        ] {
            for line in text.lines() {
                assert!(columns(line) <= width, "{what} at {width}: {} columns in {line:?}", columns(line));
                assert_eq!(line, line.trim_end(), "{what} at {width}");
            }
        }
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    widths(&common::bundle());
}

#[test]
fn hostile_names_neither_widen_nor_command_the_terminal() {
    let b = common::hostile();
    widths(&b);
    for text in [b.page(80), b.details(80)] {
        let bad: Vec<char> =
            text.chars().filter(|&c| (c.is_control() && c != '\n') || c == '\u{202e}').collect();
        assert!(bad.is_empty(), "{bad:?}");
    }
}

#[test]
fn headlines_say_what_there_is_to_say() {
    let first_line = |change: &dyn Fn(&mut Bundle)| {
        let mut b = common::bundle();
        change(&mut b);
        b.page(400).lines().next().unwrap().to_owned()
    };
    type Change<'a> = &'a dyn Fn(&mut Bundle);
    let table: [(&str, Change<'_>); 6] = [
        (
            "kernelbench-2025 misses 103 of 612 provable faults (16.8%; published 16.9% of 7,384 on KernelBench levels 1–2, H100).",
            &|b| {
                b.summary.protocols[0].witnessed = 612;
                b.summary.protocols[0].detected = 509;
            },
        ),
        ("kbv misses 28 of 533 provable faults (5.3%; published 11.5%).", &|b| {
            b.summary.protocols.swap(0, 3)
        }),
        ("kernelbench misses 0 of 1 provable fault (0.0%).", &|b| {
            b.summary.protocols.swap(0, 1);
            b.summary.protocols[0].witnessed = 1;
            b.summary.protocols[0].detected = 1;
        }),
        ("kernelbench-2025 cannot be scored: no mutant has a witness.", &|b| {
            b.summary.protocols[0].witnessed = 0
        }),
        ("kernelbench-2025 cannot be scored: no substrate passed its own reference.", &|b| {
            b.summary.protocols[0].witnessed = 0;
            b.summary.pipeline.problems = 3;
            b.summary.pipeline.baselines_failed = 3;
        }),
        ("No protocol was scored.", &|b| b.summary.protocols.clear()),
    ];
    for (want, change) in table {
        assert_eq!(first_line(change), want);
    }
}

#[test]
fn published_figures_are_marked_and_only_beside_their_protocol() {
    let mut b = common::bundle();
    assert!(b.page(80).contains("Median problem 17.4% (published 10.0%)"));
    b.summary.headline_protocol = "kbv".into();
    for f in &mut b.summary.families {
        f.published_missed_percent = None;
    }
    let page = b.page(80);
    assert!(page.contains("Median problem 17.4%; 90% band"), "{page}");
    assert!(page.lines().any(|l| l.starts_with("arithmetic") && l.contains('–')), "{page}");
}

#[test]
fn the_width_family_stands_by_itself() {
    let mut b = common::bundle();
    let before = b.page(80);
    assert!(!before.contains("Width"));
    let row = |name: &str, detected: u64| ProtocolRow {
        name: name.into(),
        detected,
        witnessed: 4,
        detected_percent: assay_measure::percent(detected, 4),
        published_percent: None,
        published_denominator: None,
        ..b.summary.protocols[0].clone()
    };
    let width = WidthSummary {
        distinct: 99,
        witnessed: 4,
        schedule_witnessed: 0,
        quarantined: 2,
        unwitnessed: 93,
        protocols: vec![row("kernelbench", 1), row("targeted-2", 3)],
        suites: vec![],
    };
    // A family row of its own exists in the summary; the page's table has the paper's six alone.
    b.summary.families.push(FamilyRow { family: "width".into(), ..b.summary.families[0].clone() });
    b.summary.width = Some(width);
    let page = b.page(200);
    let added: Vec<&str> = page.lines().filter(|l| l.contains("idth")).collect();
    assert_eq!(
        added,
        [
            "Width (indices beyond 32 bits), scored apart: 99 of the distinct, 4 witnessed, 2 quarantined, 93 unwitnessed: no affordable input shows them."
        ]
    );
    assert!(page.contains("Of the 4 witnessed, detected: kernelbench 25.0%, targeted-2 75.0%.\n"), "{page}");
    let html = b.html().unwrap();
    assert!(html.contains("93 unwitnessed: no affordable input shows them"));
    // Without a witness there is nothing to detect.
    b.summary.width.as_mut().unwrap().witnessed = 0;
    assert!(!b.page(200).contains("witnessed, detected"));
}

#[test]
fn suite_files_are_protocols() {
    let b = common::bundle();
    assert_eq!(b.suites.iter().map(|s| s.budget).collect::<Vec<_>>(), [1, 2, 3, 5]);
    for s in &b.suites {
        let p = Protocol::parse(&s.toml(), &s.file_name()).unwrap();
        assert_eq!(p.suite_budget, Some(s.budget));
        let asked: Vec<&Vec<String>> = p.problems.values().collect();
        assert!(!asked.is_empty() && asked.iter().all(|r| r.len() <= s.budget as usize));
        let json = s.json();
        let killed: u64 = s.suites.iter().filter_map(|x| x.killed.last()).sum();
        assert_eq!(s.score.unwrap().full_pool_detected, killed);
        assert_eq!(json["problems"].as_array().unwrap().len(), s.suites.len());
        assert!(json["full_pool"].as_f64().unwrap() >= json["held_out"].as_f64().unwrap());
    }
}

#[test]
fn two_audits_are_compared_within_the_terminal() {
    let (b, matrices) = common::run();
    let strict: Vec<Protocol> = b
        .protocols
        .iter()
        .map(|p| p.with_tolerance(p.name.as_str(), assay_measure::Tolerance::both(1e-5)))
        .collect();
    let c = assay_measure::compare_audits((&matrices, &b.protocols), (&matrices, &strict));
    assert!(!c.same && c.protocols.iter().any(|p| p.newly_caught.len() > 20), "a list that is cut");
    for width in 40..120 {
        for line in assay_report::comparison(&c, width).lines() {
            assert!(columns(line) <= width, "{width}: {line:?}");
        }
    }
    let page = assay_report::comparison(&c, 80);
    assert!(page.contains("Newly caught by") && page.contains("(--json lists all)"), "{page}");
}
