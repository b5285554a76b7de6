//! What the tolerance leaves unseen: the blind band as curve, plot and tables, and who cannot be refereed.

use std::fmt::Write as _;

use assay_measure::{BlindCurve, BlindPoint, Published, Summary, blind_curve, published};
use serde_json::{Value, json};

use crate::text::{Side, Table, clean, counted, number, threshold, wrap};

/// Problems listed with their band.
const LISTED: usize = 10;

/// Lengths that the text table has columns for; the plot has all.
const COLUMNS: [u64; 5] = [64, 4096, 65_536, 393_216, 16_777_216];

/// Operators in the order in which the curve has them.
fn operators(curve: &BlindCurve) -> Vec<&str> {
    let mut out: Vec<&str> = Vec::new();
    for p in &curve.points {
        if !out.contains(&p.operator.as_str()) {
            out.push(&p.operator);
        }
    }
    out
}

/// The curve as rows: operator, then the band at each of [`COLUMNS`]; published rows marked so.
fn curve_rows(curve: &BlindCurve, figures: &Published) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let missing = || "–".to_owned();
    for operator in operators(curve) {
        let at = |length: u64| curve.points.iter().find(|p| p.operator == operator && p.length == length);
        let cell = |&length: &u64| at(length).map_or_else(missing, |p| figure(p.band));
        rows.push(std::iter::once(operator.to_owned()).chain(COLUMNS.iter().map(cell)).collect());
        let theirs = &figures.blind_bands;
        if theirs.operator == operator {
            let cell = |length: &u64| {
                theirs.rows.iter().find(|r| r.length == *length).map_or_else(String::new, |r| figure(r.band))
            };
            rows.push(std::iter::once("  published".to_owned()).chain(COLUMNS.iter().map(cell)).collect());
        }
    }
    rows
}

/// A band to three digits.
fn figure(band: f64) -> String {
    match band {
        b if b.is_finite() && (10.0..1000.0).contains(&b) => {
            let places = if b < 100.0 { 1 } else { 0 };
            format!("{b:.places$}")
        }
        b if (1.0..10.0).contains(&b) => format!("{b:.2}"),
        b => threshold(b),
    }
}

fn column_name(length: u64) -> String {
    if length.is_power_of_two() && length > 1 << 20 {
        format!("2^{}", length.trailing_zeros())
    } else {
        number(length)
    }
}

/// How many problems let zeros through, and the median band.
fn spread(s: &Summary) -> Option<String> {
    let n = s.blind_bands.len();
    // The widest stand first.
    let median = s.blind_bands.get(n / 2)?;
    let zeros = s.blind_bands.iter().filter(|r| r.zeros_pass).count() as u64;
    Some(format!(
        "Every element of an output can be off by less than its band and pass {}. The median problem's is {}; {} of {} \
         let zeros through (a band of at least 1).",
        s.official_protocol,
        figure(median.band),
        number(zeros),
        counted(n as u64, "problem"),
    ))
}

/// `2/45 (352 of 1,024 positions, off by up to 0.74)` for each, or `none`.
fn strays(row: &assay_measure::RefereeRow) -> String {
    if row.strays.is_empty() {
        return "none".to_owned();
    }
    let one = |r: &assay_measure::StrayRow| {
        format!(
            "{} ({} of {} positions, off by up to {})",
            r.problem,
            number(r.violations),
            number(r.elements),
            threshold(r.max_abs_error)
        )
    };
    row.strays.iter().map(one).collect::<Vec<_>>().join(", ")
}

const CURVE_NOTE: &str = "Blind band: atol / max|ref| + rtol at 1e-2, the largest relative error that the check accepts \
                          in every element at once; on correct kernels, official kind of inputs, by length of the \
                          reduction.";

/// The text tables; empty for a run that kept no references.
pub(crate) fn tables(s: &Summary, width: usize) -> String {
    let mut out = String::new();
    if s.blind_bands.is_empty() {
        return out;
    }
    out.push_str(&wrap("Blind bands: the problems where the official inputs show least", width, "", ""));
    let mut t =
        Table::new(&[("Problem", Side::Left), ("max |ref|", Side::Right), ("blind band", Side::Right)]);
    for r in s.blind_bands.iter().take(LISTED) {
        t.row(vec![
            clean(&format!("{} {}", r.problem, r.name)),
            threshold(r.max_abs_reference),
            figure(r.band),
        ]);
    }
    out.push_str(&t.draw(width));
    if let Some(text) = spread(s) {
        out.push_str(&wrap(&clean(&text), width, "", ""));
    }
    // Tests of `assay_measure` exclude that what ships cannot be read.
    if let (Ok(curve), Ok(figures)) = (blind_curve(), published()) {
        out.push('\n');
        out.push_str(&wrap("Blind bands by length of the reduction, measured once", width, "", ""));
        let names: Vec<String> = COLUMNS.iter().map(|&c| column_name(c)).collect();
        let mut header = vec![("Operator", Side::Left)];
        header.extend(names.iter().map(|n| (n.as_str(), Side::Right)));
        let mut t = Table::new(&header);
        curve_rows(&curve, &figures).into_iter().for_each(|row| t.row(row));
        out.push_str(&t.draw(width));
        out.push_str(&wrap(CURVE_NOTE, width, "", ""));
    }
    out.push('\n');
    out.push_str(&wrap("Where the float32 reference fails its own float64 evaluation", width, "", ""));
    let mut t = Table::new(&[("atol=rtol", Side::Left), ("extents", Side::Left), ("problems", Side::Right)]);
    for r in &s.referee {
        t.row(vec![
            format!("{:e}", r.tolerance),
            r.extents.clone(),
            format!("{} of {}", r.strays.len(), number(r.problems)),
        ]);
    }
    out.push_str(&t.draw(width));
    for r in s.referee.iter().filter(|r| !r.strays.is_empty()) {
        out.push_str(&wrap(&clean(&format!("At {:e}: {}.", r.tolerance, strays(r))), width, "", ""));
    }
    out
}

/// What the page for a browser shows; null for a run that kept no references.
pub(crate) fn context(s: &Summary) -> Value {
    if s.blind_bands.is_empty() {
        return Value::Null;
    }
    let shipped = blind_curve().ok().zip(published().ok());
    let curve = shipped.as_ref().map(|(curve, figures)| {
        json!({
            "svg": svg(curve, figures, false),
            "columns": COLUMNS.iter().map(|&c| column_name(c)).collect::<Vec<_>>(),
            "rows": curve_rows(curve, figures),
            "command": curve.command,
        })
    });
    json!({
        "rows": s.blind_bands.iter().map(|r| json!({
            "problem": r.problem,
            "name": r.name,
            "max": threshold(r.max_abs_reference),
            "band": figure(r.band),
            "zeros": r.zeros_pass,
        })).collect::<Vec<_>>(),
        "listed": LISTED,
        "spread": spread(s),
        "curve": curve,
        "note": CURVE_NOTE,
        "referee": s.referee.iter().map(|r| json!({
            "tolerance": format!("{:e}", r.tolerance),
            "extents": r.extents,
            "problems": format!("{} of {}", r.strays.len(), number(r.problems)),
            "strays": strays(r),
        })).collect::<Vec<_>>(),
    })
}

/// Geometry of the plot, in SVG units.
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 132.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 46.0;
/// Least distance between two labels.
const LABEL: f64 = 15.0;

/// One colour an operator, told apart also by those who see few.
const COLOURS: [&str; 9] =
    ["#c2410c", "#7c3aed", "#1d6fd6", "#0f766e", "#a16207", "#be185d", "#4d7c0f", "#475569", "#0e7490"];

/// Both axes are logarithmic: a value's place in decades or octaves, without the host's math library.
fn log2(x: f64) -> f64 {
    // Enough for a plot: the exponent, and the mantissa by repeated squaring.
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as f64 - 1023.0;
    let mut m = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    let (mut fraction, mut bit) = (0.0, 0.5);
    for _ in 0..20 {
        m *= m;
        if m >= 2.0 {
            m /= 2.0;
            fraction += bit;
        }
        bit /= 2.0;
    }
    exponent + fraction
}

fn log10(x: f64) -> f64 {
    log2(x) / std::f64::consts::LOG2_10
}

/// The plot of the blind band against the length of the reduction, as an SVG element: both axes logarithmic, one line an
/// operator, the published points as rings. `standalone` adds what a file of its own needs. Lengths below 1 and bands
/// that are not positive numbers have no place and are left out.
pub fn svg(curve: &BlindCurve, figures: &Published, standalone: bool) -> String {
    let good = |length: u64, band: f64| length >= 1 && band.is_finite() && band > 0.0;
    let points: Vec<&BlindPoint> = curve.points.iter().filter(|p| good(p.length, p.band)).collect();
    let theirs: Vec<_> = figures.blind_bands.rows.iter().filter(|r| good(r.length, r.band)).collect();
    let lengths = || points.iter().map(|p| p.length).chain(theirs.iter().map(|r| r.length));
    let bands = || points.iter().map(|p| p.band).chain(theirs.iter().map(|r| r.band));
    let x0 = log2(lengths().min().unwrap_or(1) as f64);
    let x1 = log2(lengths().max().unwrap_or(2) as f64).max(x0 + 1.0);
    let y0 = log10(bands().fold(f64::INFINITY, f64::min).min(1e-2)).floor();
    let y1 = log10(bands().fold(0.0, f64::max).max(10.0)).ceil().max(y0 + 1.0);
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let x = |length: u64| LEFT + (log2(length as f64) - x0) / (x1 - x0) * (right - LEFT);
    let y = |band: f64| bottom - (log10(band) - y0) / (y1 - y0) * (bottom - TOP);

    let mut out = String::new();
    // Writing to a string cannot fail.
    let xmlns = if standalone { " xmlns=\"http://www.w3.org/2000/svg\"" } else { "" };
    let _ = write!(
        out,
        "<svg{xmlns} viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" role=\"img\" aria-label=\"Blind band against \
         the length of the reduction\">"
    );
    if standalone {
        out.push_str(
            "<style>text{font:13px system-ui,\"DejaVu Sans\",sans-serif;fill:#1c2430}.tick{font-size:11px;fill:#5b6675}\
             </style><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>",
        );
    }
    // Decades on the left, every fourth power of two below.
    for decade in y0 as i32..=y1 as i32 {
        let at = y(10f64.powi(decade));
        let name = match decade {
            -2..=3 => threshold(10f64.powi(decade)).replace("1.0e3", "1000"),
            _ => format!("1e{decade}"),
        };
        let _ = write!(
            out,
            "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#e1e5ea\"/><text class=\"tick\" \
             x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>",
            LEFT - 6.0,
            at + 4.0
        );
    }
    for octave in (x0.ceil() as u32..=x1 as u32).filter(|o| o.is_multiple_of(2)) {
        let at = x(1u64 << octave.min(63));
        let _ = write!(
            out,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{bottom}\" y2=\"{}\" stroke=\"#aab3bf\"/><text class=\"tick\" \
             x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            bottom + 4.0,
            bottom + 17.0,
            column_name(1u64 << octave.min(63))
        );
    }
    let _ = write!(
        out,
        "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{0:.1}\" y2=\"{0:.1}\" stroke=\"#5b6675\" stroke-dasharray=\"5 4\"/>\
         <text class=\"tick\" x=\"{1}\" y=\"{2:.1}\" text-anchor=\"end\">zeros pass above this line</text>\
         <text class=\"tick\" x=\"{3}\" y=\"{4}\" text-anchor=\"middle\">length of the reduction</text>\
         <text class=\"tick\" x=\"14\" y=\"{5}\" text-anchor=\"middle\" transform=\"rotate(-90 14 {5})\">blind band \
         (relative error)</text>",
        y(1.0),
        right - 8.0,
        y(1.0) - 5.0,
        (LEFT + right) / 2.0,
        HEIGHT - 8.0,
        (TOP + bottom) / 2.0
    );
    let mut labels: Vec<(f64, &str, &str)> = Vec::new();
    for (k, operator) in operators(curve).into_iter().enumerate() {
        let colour = COLOURS[k % COLOURS.len()];
        let mine: Vec<&&BlindPoint> = points.iter().filter(|p| p.operator == operator).collect();
        let line: Vec<String> = mine.iter().map(|p| format!("{:.1},{:.1}", x(p.length), y(p.band))).collect();
        let _ = write!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            line.join(" ")
        );
        for p in &mine {
            let _ = write!(
                out,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"><title>{}, {}: {}</title></circle>",
                x(p.length),
                y(p.band),
                escape(operator),
                number(p.length),
                figure(p.band)
            );
        }
        if let Some(last) = mine.last() {
            labels.push((y(last.band), operator, colour));
        }
    }
    for r in theirs {
        let (cx, cy) = (x(r.length), y(r.band));
        // On the left edge there is no room beside the ring.
        let (at, up, anchor) =
            if cx > LEFT + 120.0 { (cx - 12.0, 9.0, "end") } else { (cx + 4.0, 36.0, "start") };
        let _ = write!(
            out,
            "<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"7\" fill=\"none\" stroke=\"#1c2430\" stroke-width=\"2\"><title>\
             published: {0}</title></circle><text class=\"tick\" x=\"{at:.1}\" y=\"{1:.1}\" text-anchor=\"{anchor}\">\
             published {0}</text>",
            figure(r.band),
            cy - up
        );
    }
    // From the lowest line up, each label at least one height above the one below it.
    labels.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut below = bottom + LABEL;
    for (at, operator, colour) in labels {
        let place = (at + 4.0).min(below - LABEL);
        below = place;
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{place:.1}\" style=\"fill:{colour}\">{}</text>",
            right + 10.0,
            escape(operator)
        );
    }
    out.push_str("</svg>");
    out
}

/// Text that can stand in an element.
fn escape(s: &str) -> String {
    clean(s).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
