//! The page for a browser is one safe, self-contained file.

mod common;

use assay_measure::Summary;

fn embedded(html: &str) -> Summary {
    let open = "<script type=\"application/json\" id=\"summary\">";
    let at = html.find(open).unwrap() + open.len();
    let end = at + html[at..].find("</script>").unwrap();
    serde_json::from_str(&html[at..end]).unwrap()
}

#[test]
fn the_page_holds_everything_it_should() {
    let b = common::bundle();
    let html = b.html().unwrap();
    for want in [
        "kernelbench-2025 misses 110 of 533 provable faults",
        "published 16.9% of 7,384",
        "gemm_multiply_leaky_relu",
        "<svg viewBox",
        "published 78.6%",
        "published 10,303",
        "published 8,253",
        "published figures: 188",
        "Worst: <b>1&#x2f;4 matrix_vector</b>",
        "int i = blockIdx.y * blockDim.x",
        "Desk extents",
        "zeros pass above this line",
        "1e-4</td><td>desk</td>",
        "(9 of 4,096 positions, off by up to 0.74)",
        "13.5",
    ] {
        assert!(html.contains(want), "`{want}` is missing");
    }
    assert_eq!(embedded(&html), b.summary);
}

#[test]
fn the_page_asks_for_nothing_from_outside() {
    let html = common::bundle().html().unwrap();
    for bad in ["http:", "https:", "src=", "href=", "url(", "@import", "<link", "<iframe", "=\"//"] {
        assert!(!html.contains(bad), "`{bad}`");
    }
    assert!(html.contains("default-src 'none'"));
}

#[test]
fn hostile_names_stay_text() {
    let b = common::hostile();
    let html = b.html().unwrap();
    assert_eq!(html.matches("<script").count(), 1);
    assert_eq!(html.matches("</script").count(), 1);
    assert_eq!(html.matches("<pre>").count(), html.matches("</pre>").count());
    assert!(!html.contains("<img") && !html.contains("</pre><script>"));
    assert!(html.contains("&lt;script&gt;alert(1)"), "it is shown as text");
    assert_eq!(embedded(&html).caveats, b.summary.caveats);
}

#[test]
fn a_run_with_nothing_to_show_has_a_page_too() {
    let mut b = common::bundle();
    b.summary.protocols.clear();
    b.summary.families.clear();
    b.summary.suites.clear();
    b.summary.problems.clear();
    b.summary.survivors.clear();
    b.summary.mechanisms.clear();
    b.summary.statistics.bands.clear();
    b.summary.statistics.per_problem = None;
    b.summary.statistics.suite_inputs_median = None;
    b.summary.worst_problem = None;
    b.summary.caveats.clear();
    b.summary.environment.clear();
    b.mutants.clear();
    b.sources.clear();
    let html = b.html().unwrap();
    assert!(html.contains("No protocol was scored."));
    assert!(!html.contains("most surprising survivors"));
    assert!(b.page(80).starts_with("No protocol was scored.\n") && b.details(80).is_empty());
    assert!(b.stryker()["files"].as_object().unwrap().is_empty());
}

#[test]
fn the_plot_in_the_documents_is_the_measured_curves() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/blind-band.svg");
    let curve = assay_measure::blind_curve().unwrap();
    let mut plot = assay_report::blind_band_svg(&curve, &assay_measure::published().unwrap(), true);
    plot.push('\n');
    if std::env::var_os("ASSAY_BLESS").is_some() {
        std::fs::write(&file, &plot).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap_or_default(), plot, "ASSAY_BLESS=1 accepts");
    // Every point has its mark, and each published one its ring.
    let marks = plot.matches("<circle").count();
    assert_eq!(marks, curve.points.len() + 2);
    assert!(!plot.contains("NaN") && !plot.contains("inf"));
}
