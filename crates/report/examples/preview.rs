//! Prints the report of a made-up run: `cargo run -p assay-report --example preview -- html > page.html`, or `page`,
//! `details`, `stryker`, and a width.

#[path = "../tests/common/mod.rs"]
mod common;

fn main() {
    let what = std::env::args().nth(1).unwrap_or_else(|| "page".into());
    let width = std::env::args().nth(2).and_then(|w| w.parse().ok()).unwrap_or(80);
    let bundle = common::bundle();
    let text = match what.as_str() {
        "html" => bundle.html().expect("the template fits the data"),
        "details" => bundle.details(width),
        "suite" => bundle.suites[1].page(width),
        "toml" => bundle.suites[1].toml(),
        "stryker" => bundle.stryker().to_string(),
        _ => bundle.page(width),
    };
    print!("{text}");
}
