//! The page for a browser: one file, no script, nothing loaded from anywhere.

use assay_measure::{LeftOutRow, Mechanism, ProtocolRow, Tolerance, published};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde_json::{Value, json};

use crate::details::{lines, sentence};
use crate::page::{
    checkers, denominators, false_kills, headline, inputs, is_official, own_tolerance, place, sanitizer,
    shown_families, timing, width_counts,
};
use crate::text::{clean, number, percent, points, seconds, shell, threshold, tolerance};
use crate::{Bundle, ReportError};

const TEMPLATE: &str = include_str!("report.html.jinja");

/// Geometry of the family chart, in SVG units.
const CHART_ROW: f64 = 26.0;
const CHART_LEFT: f64 = 130.0;
const CHART_WIDTH: f64 = 380.0;
/// Room for the longest label beside a full bar.
const CHART_RIGHT: f64 = 250.0;

impl Bundle {
    /// The whole page.
    ///
    /// # Errors
    /// `Template` or `Json` where the template and the data do not fit, which a test excludes.
    pub fn html(&self) -> Result<String, ReportError> {
        let mut environment = Environment::new();
        // Every value is escaped, whatever the template is called.
        environment.set_auto_escape_callback(|_| AutoEscape::Html);
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
        environment.add_template("report", TEMPLATE)?;
        let data = embedded(&serde_json::to_string(&self.summary)?);
        let mut context = self.context();
        if let Some(map) = context.as_object_mut() {
            map.insert("data".into(), data.into());
        }
        Ok(environment.get_template("report")?.render(Serde(context))?)
    }

    fn context(&self) -> Value {
        let s = &self.summary;
        let p = &s.pipeline;
        let figures = published().ok();
        let folder = shell(&clean(&self.folder));
        let theirs = figures.as_ref().map(|f| &f.pipeline);
        let funnel: Vec<Value> = [
            ("generated", p.generated, theirs.map(|t| t.generated), "mutants of correct kernels"),
            ("not compiling", p.noncompiling, theirs.map(|t| t.noncompiling), "refused by the compiler"),
            ("duplicate", p.duplicate_image, theirs.map(|t| t.duplicate_image), "same machine code as another"),
            ("equivalent", p.equivalent, theirs.map(|t| t.equivalent), "same machine code as the original"),
            ("distinct", p.distinct, theirs.map(|t| t.distinct), "what is left"),
            ("witnessed", p.witnessed, theirs.map(|t| t.witnessed), "proved wrong on a valid input"),
            ("by schedule", p.schedule_witnessed, None, "wrong under another schedule only"),
            ("quarantined", p.quarantined, None, "neither kill nor pass"),
        ]
        .into_iter()
        .map(|(name, n, published, what)| {
            json!({ "name": name, "n": number(n), "published": published.map(number), "what": what })
        })
        .collect();
        let suites: Vec<Value> = s
            .suites
            .iter()
            .map(|r| {
                json!([
                    r.budget.to_string(),
                    percent(r.full_pool),
                    percent(r.published_full_pool),
                    percent(r.held_out),
                    percent(r.published_held_out),
                ])
            })
            .collect();
        let mechanisms: Vec<Value> = s
            .mechanisms
            .iter()
            .map(|m| {
                json!({
                    "name": m.mechanism.map_or("unexplained", Mechanism::phrase),
                    "n": number(m.survivors),
                    "what": sentence(m.mechanism, &s.headline_protocol),
                })
            })
            .collect();
        let by_family = crate::tables::mechanism_table(s);
        let rules: Vec<Value> = s
            .rules
            .iter()
            .filter(|r| r.missed > 0)
            .map(|r| json!([r.id, r.family, number(r.witnessed), number(r.missed)]))
            .collect();
        let patterns: Vec<Value> = s
            .miss_patterns
            .iter()
            .map(|m| {
                let who = if m.missed_by.is_empty() {
                    "none: every protocol catches them".to_owned()
                } else {
                    m.missed_by.join(", ")
                };
                json!([who, number(m.mutants)])
            })
            .collect();
        let environment: Vec<Value> = s
            .environment
            .iter()
            .map(|(k, v)| json!([k, v.as_str().map_or_else(|| v.to_string(), str::to_owned)]))
            .collect();
        json!({
            "title": format!("Assay: {}", s.headline_protocol),
            "headline": clean(&headline(s, figures.as_ref())),
            "problems": number(p.problems),
            "published_problems": theirs.map(|t| number(t.problems)),
            "baselines_failed": p.baselines_failed,
            "unrefereeable": p.unrefereeable,
            "funnel": funnel,
            "protocols": s.protocols.iter().map(protocol).collect::<Vec<_>>(),
            "any": any_of(s.protocols.iter().chain(s.width.iter().flat_map(|w| &w.protocols))),
            "denominators": denominators(&s.protocols, false),
            "checkers": checkers(&s.protocols).iter().map(|l| clean(l)).collect::<Vec<_>>(),
            "decomposition": s.decomposition.iter().map(|r| json!({
                "name": r.protocol,
                "tolerance": tolerance(r.atol, r.rtol),
                "inputs_first": points(r.inputs_first),
                "tolerance_second": points(r.tolerance_second),
                "tolerance_first": points(r.tolerance_first),
                "inputs_second": points(r.inputs_second),
                "detected": percent(assay_measure::percent(r.detected, r.witnessed)),
                "published": r.published_inputs_first.zip(r.published_tolerance_second)
                    .map(|(i, t)| json!([points(Some(i)), points(Some(t))])),
            })).collect::<Vec<_>>(),
            "headline_protocol": s.headline_protocol,
            "official_protocol": s.official_protocol,
            "chart": self.chart(),
            "mechanisms": mechanisms,
            "median": s.statistics.per_problem.as_ref().map(|d| format!("{:.1}%", d.median)),
            "bands": s.statistics.bands.iter().map(|b| json!([
                number(b.problems), format!("{:.1}%", b.low), format!("{:.1}%", b.median), format!("{:.1}%", b.high),
            ])).collect::<Vec<_>>(),
            "suites": suites,
            "curve": s.budget_curve.iter().map(|r| {
                let beside = |rows: &[LeftOutRow]| {
                    percent(rows.iter().find(|l| l.budget == r.budget).and_then(|l| l.detected_percent))
                };
                json!([
                    r.budget.to_string(),
                    percent(assay_measure::percent(r.greedy, r.witnessed)),
                    percent(assay_measure::percent(r.optimum, r.witnessed)),
                    format!("{} of {}", number(r.proven), number(r.problems)),
                    beside(&s.left_out.rules),
                    beside(&s.left_out.problems),
                ])
            }).collect::<Vec<_>>(),
            "suite_inputs": s.statistics.suite_inputs_median.zip(s.statistics.suite_inputs_largest).map(|(m, l)| json!([number(m), number(l)])),
            "worst": s.worst_problem.as_ref().map(|w| json!({
                "problem": w.problem, "name": w.name, "percent": percent(w.missed_percent), "why": w.why,
            })),
            "sanitizer": sanitizer(s),
            "sanitizer_families": s.sanitizer_families.iter().filter(|r| r.witnessed + r.flagged_not_witnessed > 0).map(|r| json!([
                r.family.clone(),
                number(r.witnessed),
                percent(assay_measure::percent(r.detected, r.witnessed)),
                number(r.missed_by_official),
                number(r.alone),
                number(r.flagged_not_witnessed),
            ])).collect::<Vec<_>>(),
            "not_flagged": number(s.sanitizer.witnessed_and_not_flagged),
            "paper": figures
                .as_ref()
                .filter(|_| is_official(&s.headline_protocol))
                .map(|f| json!({ "source": f.source, "rows": crate::tables::paper_rows(s, f) })),
            "by_family": {
                "header": by_family.0,
                "rows": by_family.1,
            },
            "blind": crate::bands::context(s),
            "undetected": crate::tables::undetected_rows(s),
            "unwitnessed": s.unwitnessed.iter().map(|r| json!([
                crate::tables::reason(r.reason), number(r.mutants), number(r.width),
            ])).collect::<Vec<_>>(),
            "rows": self.problem_rows(),
            "survivors": self.survivors(),
            "rules": rules,
            "patterns": patterns,
            "width": s.width.as_ref().map(|w| json!({
                "counts": width_counts(w),
                "protocols": w.protocols.iter().map(protocol).collect::<Vec<_>>(),
                "suites": w.suites.iter().map(|r| json!([
                    r.budget.to_string(), percent(r.full_pool), percent(r.held_out),
                ])).collect::<Vec<_>>(),
            })),
            "caveats": s.caveats,
            "timing": timing(s),
            "wall": seconds(s.timing.wall_seconds),
            "environment": environment,
            "witness_tolerance": format!("{:e}", Tolerance::PAPER.atol),
            "folder": folder,
        })
    }

    /// The families as bars, with what was published as a mark.
    fn chart(&self) -> Value {
        let families: Vec<_> = shown_families(&self.summary).collect();
        let scale = |p: Option<f64>| p.map(|p| p.clamp(0.0, 100.0) / 100.0 * CHART_WIDTH);
        let mut rows = Vec::new();
        for (i, f) in families.iter().enumerate() {
            let y = CHART_ROW * i as f64 + 20.0;
            let width = scale(f.missed_percent).unwrap_or(0.0);
            rows.push(json!({
                "name": f.family,
                "y": y,
                "middle": y + CHART_ROW / 2.0 - 3.0,
                "width": width,
                "label": format!("{} ({} of {})", percent(f.missed_percent), number(f.missed), number(f.witnessed)),
                "label_x": CHART_LEFT + width.max(scale(f.published_missed_percent).unwrap_or(0.0)) + 8.0,
                "published": f.published_missed_percent.map(|p| format!("{p:.1}%")),
                "mark": scale(f.published_missed_percent).map(|x| CHART_LEFT + x),
            }));
        }
        let ticks: Vec<Value> = [0u32, 25, 50, 75, 100]
            .iter()
            .map(|&t| json!({ "x": CHART_LEFT + f64::from(t) / 100.0 * CHART_WIDTH, "label": format!("{t}%") }))
            .collect();
        json!({
            "left": CHART_LEFT,
            "total": CHART_LEFT + CHART_WIDTH + CHART_RIGHT,
            "height": CHART_ROW * rows.len() as f64 + 24.0,
            "published": families.iter().any(|f| f.published_missed_percent.is_some()),
            "rows": rows,
            "ticks": ticks,
        })
    }

    fn problem_rows(&self) -> Vec<Value> {
        self.summary
            .problems
            .iter()
            .map(|r| {
                let share = assay_measure::percent(r.missed, r.witnessed);
                let suite = match r.fewest_inputs {
                    Some(f) if f < r.suite_inputs => format!("{} (fewest {f})", r.suite_inputs),
                    _ => r.suite_inputs.to_string(),
                };
                json!({
                    "problem": r.problem,
                    "name": r.name,
                    "distinct": number(r.distinct),
                    "witnessed": number(r.witnessed),
                    "missed": number(r.missed),
                    "percent": percent(share),
                    "bar": share.unwrap_or(0.0),
                    "inputs": number(r.inputs),
                    "suite": suite,
                    "scored": r.status == "scored",
                    "reason": r.reason,
                })
            })
            .collect()
    }

    fn survivors(&self) -> Vec<Value> {
        let protocol = &self.summary.headline_protocol;
        self.summary
            .survivors
            .iter()
            .map(|v| {
                let diff: Vec<Value> = lines(self, v)
                    .iter()
                    .map(|l| {
                        let class = match l.mark {
                            '-' => "old",
                            '+' => "new",
                            _ => "same",
                        };
                        json!({ "class": class, "text": format!("{} {}", l.mark, l.text) })
                    })
                    .collect();
                json!({
                    "problem": v.problem,
                    "problem_name": v.problem_name,
                    "place": clean(place(v)),
                    "family": v.family,
                    "rule": v.rule,
                    "mutant": v.mutant,
                    "mechanism": v.mechanism.map_or("no known mechanism", Mechanism::phrase),
                    "sentence": sentence(v.mechanism, protocol),
                    "witness": v.witness,
                    "witness_threshold": threshold(v.witness_threshold),
                    "asked_threshold": threshold(v.asked_threshold),
                    "flagged": v.flagged,
                    "diff": diff,
                })
            })
            .collect()
    }
}

/// Which of the rarer columns have anything to show.
fn any_of<'a>(rows: impl Iterator<Item = &'a ProtocolRow> + Clone) -> Value {
    json!({
        "invalid": rows.clone().any(|p| p.invalid_rejections > 0),
        "exhausted": rows.clone().any(|p| p.exhausted > 0),
        "unsupported": rows.clone().any(|p| p.unsupported > 0),
    })
}

fn protocol(p: &ProtocolRow) -> Value {
    json!({
        "name": p.name,
        "inputs": inputs(p),
        "tolerance": own_tolerance(p),
        "detected": percent(p.detected_percent),
        "bar": p.detected_percent.unwrap_or(0.0),
        "count": format!("{} of {}", number(p.detected), number(p.witnessed)),
        "false_kills": false_kills(p),
        "any_false": p.false_kills > 0,
        "invalid": number(p.invalid_rejections),
        "exhausted": number(p.exhausted),
        "unsupported": number(p.unsupported),
        "published": percent(p.published_percent),
    })
}

/// JSON that can stand inside a `script` element: no `<`, no `>`, no `&`, and no line end that a script has of its
/// own. JSON knows the escapes, so it reads back as it was.
fn embedded(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}
