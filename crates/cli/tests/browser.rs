//! The page of a comparison in a real browser, if there is one: it must lay out, load nothing, and fit wide and narrow
//! windows. crates/lab/src/html/tests.rs checks the page's content without a browser.

mod program;

use program::{folder, run_well};
use std::fs;
use std::path::Path;
use std::process::Command;

const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// Measures the page once it is laid out, with everything unfolded, and puts what is wrong into its title.
const PROBE: &str = "<script>addEventListener('load', () => {
    const wrong = [];
    for (const details of document.querySelectorAll('details')) details.open = true;
    const page = document.documentElement;
    if (page.scrollWidth > innerWidth) wrong.push(`${page.scrollWidth} pixels wide in ${innerWidth}`);
    const asked = [...document.querySelectorAll('[src], link')].map(element => element.src || element.href);
    const loaded = [...performance.getEntriesByType('resource').map(entry => entry.name), ...asked];
    if (loaded.length > 0) wrong.push(`loads ${loaded}`);
    const drawings = document.querySelectorAll('svg');
    for (const svg of drawings) {
        const [box, view] = [svg.getBBox(), svg.viewBox.baseVal];
        const inside = box.x >= view.x - 1 && box.y >= view.y - 1 && box.x + box.width <= view.x + view.width + 1
            && box.y + box.height <= view.y + view.height + 1;
        if (!(inside && box.width > 0 && svg.getBoundingClientRect().height > 0)) wrong.push('a drawing is empty or cut');
    }
    for (const table of document.querySelectorAll('table')) {
        if (table.getBoundingClientRect().height === 0) wrong.push('a table without height');
    }
    const plots = [...drawings].filter(svg => svg.getBoundingClientRect().width > 200);
    document.title = `${innerWidth}: ${plots.length} plots, wrong: ${wrong.join(', ') || 'nothing'}`;
});</script>";

/// The page's title after [`PROBE`] has run in a window of this width; `None` without a browser.
fn title(place: &Path, page: &str, width: u32) -> Option<String> {
    let probed = place.join("probed.html");
    fs::write(&probed, format!("{page}{PROBE}")).expect("a file of the test's own");
    let profile = format!("--user-data-dir={}", place.join("profile").display());
    let size = format!("--window-size={width},900");
    let options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--dump-dom", &profile, &size];
    let address = format!("file://{}", probed.display());
    let ran = BROWSERS.iter().find_map(|browser| Command::new(browser).args(options).arg(&address).output().ok())?;
    let dom = String::from_utf8_lossy(&ran.stdout).to_string();
    let title = dom.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    Some(title.unwrap_or_else(|| panic!("no title: {dom} {}", String::from_utf8_lossy(&ran.stderr))).0.to_string())
}

#[test]
fn a_browser_shows_the_page_whole_at_any_width() {
    let place = folder("browser");
    let workloads =
        ["pipetest:batches=2,loops=5", "hackbench-pipes:groups=1+2,loops=2", "schbench:workers=2,runtime=1"];
    let mut arguments = vec!["compare", "--machine", "skylake-uma-8", "--iterations", "2", "--out", "out"];
    arguments.extend(workloads.iter().flat_map(|workload| ["--workload", workload]));
    arguments.extend(["--arm", "before=v6.1", "--arm", "after=v6.12,cpufreq.driver=intel_pstate"]);
    let said = run_well(&place, &arguments);
    assert!(said.stdout.contains("schbench"), "{}", said.stdout);
    let page = fs::read_to_string(place.join("out/report.html")).expect("every comparison writes one");
    for width in [1_400, 500] {
        let Some(title) = title(&place, &page, width) else {
            println!("none of {BROWSERS:?} is there: nobody has looked at the page");
            return;
        };
        // Two for each table.
        assert_eq!(title, format!("{width}: 6 plots, wrong: nothing"));
    }
    // The probe itself notices what is too wide, and what is loaded.
    let broken = page.replace("<h1>", "<img src=\"x.png\"><p style=\"width:3000px\">wide</p><h1>");
    let title = title(&place, &broken, 1_400).expect("it was there before");
    assert!(title.contains("pixels wide in 1400") && title.contains("x.png"), "{title}");
}
