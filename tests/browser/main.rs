//! The report's page in a browser: what a reader sees and does. Without Chromium the tests say that they are skipped.
//!
//! Pictures of what was seen are left in `target/report-pictures/`.
mod driver;
mod first_screen;
mod graphs;

use driver::Browser;
use graphs::{HOSTILE, blocks, hostile, report, report_of_text};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

/// One browser at a time: times are measured.
static ALONE: Mutex<()> = Mutex::new(());

struct Scene {
    browser: Browser,
    folder: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

fn scene() -> Option<Scene> {
    let alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    Some(Scene { browser: Browser::start()?, folder: tempfile::tempdir().expect("a scratch folder"), _alone: alone })
}

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/graphs").join(name).join("graph.pb")
}

fn picture(browser: &mut Browser, name: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../report-pictures");
    std::fs::create_dir_all(&folder).expect("target/ can be written");
    browser.picture(&folder.join(format!("{name}.png")));
}

/// The report of a graph of this repository, opened.
fn opened(scene: &mut Scene, graph: &str, flags: &[&str], fragment: &str) -> PathBuf {
    let page = report(scene.folder.path(), &testdata(graph), flags);
    scene.browser.open(&page, fragment);
    page
}

/// The title of the inspector: what is chosen.
fn chosen(browser: &mut Browser) -> String {
    browser.text("document.querySelector('#inspector h2').textContent")
}

/// Where the middle of the box of a node or group is on the page.
fn place(browser: &mut Browser, at: &str) -> (f64, f64) {
    let script = format!(
        "(() => {{ const v = tfaot.app.view, b = {at}, r = v.canvas.getBoundingClientRect(); \
         return [r.x + v.x + (b.x + b.w / 2) * v.scale, r.y + v.y + (b.y + 12) * v.scale]; }})()"
    );
    let at = browser.js(&script);
    (at[0].as_f64().expect("x"), at[1].as_f64().expect("y"))
}

#[test]
fn ten_thousand_nodes_paint_within_a_second() {
    let Some(mut s) = scene() else { return };
    let page = report_of_text(s.folder.path(), "blocks", &blocks(10_000), &["--no-compile"]);
    let mut least = [f64::MAX; 2];
    for _ in 0..3 {
        s.browser.open(&page, "#view=graph");
        s.browser.until("document.documentElement.dataset.graph === 'drawn'");
        s.browser.until("performance.getEntriesByType('paint').length === 2");
        let times = s.browser.js(
            "[performance.getEntriesByName('first-contentful-paint')[0].startTime, performance.getEntriesByName('graph-drawn')[0].startTime]",
        );
        for (least, time) in least.iter_mut().zip([&times[0], &times[1]]) {
            *least = least.min(time.as_f64().expect("milliseconds"));
        }
    }
    println!("10,000 nodes: first paint after {:.0} ms, the graph after {:.0} ms", least[0], least[1]);
    assert!(least[0] < 1000.0, "first paint after {} ms", least[0]);
    assert!(least[1] < 1000.0, "the graph after {} ms", least[1]);
    picture(&mut s.browser, "ten-thousand");
    assert_eq!(s.browser.complaints(), Vec::<&Value>::new());
}

#[test]
fn a_hundred_thousand_nodes_answer_a_click() {
    let Some(mut s) = scene() else { return };
    let page = report_of_text(s.folder.path(), "blocks", &blocks(100_000), &["--no-compile"]);
    let bytes = std::fs::metadata(&page).expect("it was written").len();
    assert!(bytes < 2_000_000 + 60 * 100_000, "{bytes} bytes");
    s.browser.open(&page, "#view=graph");
    s.browser.until("document.documentElement.dataset.graph === 'drawn'");
    // The first closed group is opened by two clicks.
    let group = "v.boxes.find(b => b.group !== undefined && !v.scene().groups[b.group].open)";
    s.browser.js("(() => { const v = tfaot.app.view; v.centre(v.boxes.find(b => b.group !== undefined && !v.scene().groups[b.group].open)); })()");
    let number = s.browser.js(&format!("(() => {{ const v = tfaot.app.view; return {group}.group; }})()"));
    let (x, y) = place(&mut s.browser, group);
    let start = Instant::now();
    s.browser.click(x, y, 2);
    s.browser.until(&format!(
        "tfaot.app.view.scene().groups[{number}].open && tfaot.app.view.scene().groups[{number}].layout"
    ));
    let click = start.elapsed();
    let start = Instant::now();
    s.browser.js("document.getElementById('search').focus()");
    s.browser.write("layer_3/op_90121/relu");
    s.browser.key("Enter");
    s.browser.until("document.querySelector('#inspector h2').textContent === 'relu'");
    println!("100,000 nodes: opened after {click:?}, found after {:?}, {bytes} bytes", start.elapsed());
    assert!(click.as_secs_f64() < 2.0 && start.elapsed().as_secs_f64() < 3.0);
    s.browser.js("tfaot.app.view.setGrouping('cluster')");
    s.browser.until("tfaot.app.view.boxes.length > 10");
    // Clusters and what lies between them never wait for each other.
    assert_eq!(s.browser.js("tfaot.app.view.wires.filter(w => w.back).length"), json!(0));
    assert_eq!(s.browser.complaints(), Vec::<&Value>::new());
}

#[test]
fn a_search_finds_and_chooses() {
    let Some(mut s) = scene() else { return };
    opened(&mut s, "functions", &["--no-compile"], "");
    s.browser.key("/");
    assert_eq!(s.browser.text("document.activeElement.id"), "search");
    let name = s.browser.text("tfaot.app.model.name(20)");
    s.browser.write(&name);
    s.browser.until("document.querySelectorAll('#found li[role=option]').length > 0");
    s.browser.key("Enter");
    assert_eq!(s.browser.js("tfaot.app.selected.node"), json!(20));
    assert_eq!(s.browser.text("document.activeElement.id === 'search' ? 'still' : 'left'"), "left");
    let ops = s.browser.js("tfaot.find('op:' + tfaot.app.model.op(20)).length");
    assert!(ops.as_u64() > Some(0));
    s.browser.key("/");
    s.browser.js("document.getElementById('search').value = ''");
    s.browser.write("no such node");
    s.browser.until("document.querySelector('#found .none')");
}

#[test]
fn keys_reach_everything() {
    let Some(mut s) = scene() else { return };
    opened(&mut s, "conv_net", &[], "#node=Conv2D_1");
    s.browser.js("document.getElementById('canvas').focus()");
    s.browser.key("ArrowDown");
    let below = s.browser.js("tfaot.app.model.inputs(tfaot.app.selected.node).map(n => tfaot.app.model.name(n))");
    assert!(below.as_array().expect("a list").contains(&json!("Conv2D_1")), "{below}");
    s.browser.key("ArrowUp");
    assert_eq!(chosen(&mut s.browser), "Conv2D_1");
    s.browser.key("Enter");
    assert_eq!(s.browser.text("document.activeElement.id"), "inspector");
    s.browser.key("c");
    s.browser.until("!document.getElementById('drawer').hidden");
    for (key, pane) in [("1", "hlo"), ("2", "kernels"), ("3", "asm"), ("4", "memory"), ("5", "profile")] {
        if s.browser.js(&format!("!!document.getElementById('pane-{pane}')")) == json!(true) {
            s.browser.key(key);
        }
        s.browser.key(key);
        let active = s.browser.text("document.activeElement.className");
        assert_eq!(active, format!("body {pane}"), "key {key}");
    }
    s.browser.key("g");
    assert_eq!(s.browser.text("document.getElementById('grouping').value"), "cluster");
    s.browser.key("n");
    s.browser.until("!document.getElementById('whole').hidden");
    s.browser.key("?");
    s.browser.until("document.getElementById('keys').open");
    s.browser.key("Escape");
    s.browser.until("!document.getElementById('keys').open");
    s.browser.key("t");
    assert_eq!(s.browser.text("document.documentElement.dataset.theme"), "dark");
    s.browser.key("a");
    assert_eq!(s.browser.js("document.getElementById('answer').hidden"), json!(false));
    // Nothing that can be used is out of the reach of Tab.
    let lost =
        "[...document.querySelectorAll('button, select, input, a[href], canvas')].filter(e => e.tabIndex < 0).length";
    assert_eq!(s.browser.js(lost), json!(0));
}

#[test]
fn the_address_opens_a_node_and_follows() {
    let Some(mut s) = scene() else { return };
    let page = opened(&mut s, "conv_net", &[], "#node=Relu6&code=0");
    assert_eq!(chosen(&mut s.browser), "Relu6");
    s.browser.until("!document.getElementById('drawer').hidden");
    let (x, y) = place(&mut s.browser, "v.boxOf(tfaot.app.model.find('BiasAdd_1'))");
    s.browser.click(x, y, 1);
    s.browser.until("location.hash.startsWith('#node=BiasAdd_1')");
    assert_eq!(chosen(&mut s.browser), "BiasAdd_1");
    s.browser.js("location.hash = '#cluster=0'");
    s.browser.until("document.querySelector('#inspector h2').textContent === 'cluster_0'");
    s.browser.open(&page, "#node=no/such");
    assert!(s.browser.text("document.getElementById('live').textContent").contains("no node no/such"));
    for odd in ["#node=%E0%A4%A", "#cluster=99", "#edge=-1", "#code=x", "#view", "#&&="] {
        s.browser.open(&page, odd);
        assert_eq!(s.browser.complaints(), Vec::<&Value>::new(), "{odd}");
    }
}

#[test]
fn one_choice_is_lit_in_all_panes() {
    let Some(mut s) = scene() else { return };
    opened(&mut s, "conv_net", &["--profile", "--seconds", "0"], "#node=Conv2D_1&code=0");
    s.browser.until("document.querySelector('.hlo .lit')");
    for pane in ["kernels", "profile"] {
        s.browser.js(&format!("document.getElementById('pane-button-{pane}').click()"));
    }
    assert!(s.browser.text("document.querySelector('.hlo .lit').textContent").contains("op_name=\"Conv2D_1\""));
    assert!(s.browser.text("document.querySelector('.kernels .lit').textContent").contains("Conv2D_1"));
    assert!(s.browser.text("document.querySelector('.asm .lines').textContent").contains("cluster_0_k"));
    assert!(s.browser.js("document.querySelectorAll('.memory .block.lit').length").as_u64() > Some(0));
    assert!(s.browser.text("document.querySelector('.profile .lit').textContent").contains("Conv2D_1"));
    picture(&mut s.browser, "all-panes");
    // Back from a kernel to its node, and from memory to its kernels.
    s.browser.js(
        "(() => { const a = tfaot.app, [k] = a.codeView.index.lit({ node: a.model.find('depthwise') }).kernels; \
         [...document.querySelectorAll('.profile tbody tr')].find(r => r.firstChild.textContent === 'k' + k).click(); })()",
    );
    assert!(s.browser.js("tfaot.app.view.lit.has(tfaot.app.model.find('depthwise'))") == json!(true));
    s.browser.js("document.querySelector('.memory .block').dispatchEvent(new MouseEvent('click'))");
    assert_eq!(s.browser.js("document.querySelectorAll('.memory .block.lit').length"), json!(1));
    assert!(s.browser.js("document.querySelectorAll('.profile .lit').length").as_u64() > Some(0));
    s.browser.js("(() => { const c = document.getElementById('colouring'); c.value = 'time'; c.dispatchEvent(new Event('change')); })()");
    s.browser.until("tfaot.app.view.times && tfaot.app.view.times.size > 3");
    // Groups sum up what their kernels take, each once.
    let all = "tfaot.app.code('m0').then(index => index.code.kernels.reduce((sum, k) => sum + k.ms, 0))";
    let root = "tfaot.app.view.scene().sum(0, n => tfaot.app.view.ownTimes.get(n) || 0)";
    assert_eq!(s.browser.js(&format!("Math.abs({root} / tfaot.app.view.timeOfAll - 1) < 1e-9")), json!(true));
    let holds = format!("{all}.then(all => {root} <= all + 1e-9 && {root} > 0.5 * all)");
    assert_eq!(s.browser.js(&holds), json!(true));
    assert_eq!(s.browser.complaints(), Vec::<&Value>::new());
}

#[test]
fn exports_are_whole() {
    let Some(mut s) = scene() else { return };
    let page = opened(&mut s, "attention", &[], "#view=graph");
    s.browser.until("document.documentElement.dataset.graph === 'drawn'");
    let parsed = s.browser.js(
        "(() => { const d = new DOMParser().parseFromString(tfaot.svg(), 'image/svg+xml'); \
         return [d.getElementsByTagName('parsererror').length, d.querySelectorAll('rect').length, d.querySelectorAll('text').length]; })()",
    );
    assert_eq!(parsed[0], json!(0));
    assert!(parsed[1].as_u64() > Some(10) && parsed[2].as_u64() > Some(10), "{parsed}");
    let text = s.browser.text("tfaot.json()");
    let mine: Value = serde_json::from_str(&text).expect("JSON");
    let printed = std::process::Command::new(env!("CARGO_BIN_EXE_tfaot"))
        .args(["report", "-q", "--json", "--tf-xla-flags=--tf_xla_min_cluster_size=1"])
        .arg(testdata("attention"))
        .env_remove("TF_XLA_FLAGS")
        .output()
        .expect("the binary starts");
    let theirs: Value = serde_json::from_slice(&printed.stdout).expect("JSON");
    assert!(same(&mine, &theirs), "the page holds what --json prints");
    // The buttons give files.
    let folder = s.folder.path().join("downloads");
    let allowed = json!({"behavior": "allow", "downloadPath": folder.display().to_string()});
    s.browser.ask("Page.setDownloadBehavior", allowed);
    for (button, ending) in [("svg", "svg"), ("json", "json")] {
        s.browser.js(&format!("document.getElementById('{button}').click()"));
        let start = Instant::now();
        let is_there = || {
            let files = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            files.into_iter().any(|f| f.path().extension().is_some_and(|e| e == ending))
        };
        while !is_there() {
            assert!(start.elapsed().as_secs() < 20, "no {ending} of {} came", page.display());
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

/// Whether two documents are the same; a number may be written as `1` or `1.0`.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| same(v, w)))
        }
        (a, b) => a == b,
    }
}

#[test]
fn nothing_is_fetched() {
    let Some(mut s) = scene() else { return };
    opened(&mut s, "conv_net", &[], "#node=Conv2D&code=0");
    s.browser.until("document.querySelector('.hlo .lit')");
    s.browser.js("fetch('https://example.com/').catch(() => 'refused')");
    let requests: Vec<String> = s.browser.requests().iter().map(|r| r.to_string()).collect();
    let told = s.browser.complaints().iter().filter(|c| c.to_string().contains("Content Security Policy")).count();
    assert!(told > 0, "the policy refuses what is asked for by hand");
    assert!(requests.iter().all(|r| r == "https://example.com/"), "{requests:?}");
}

#[test]
fn light_and_dark() {
    let Some(mut s) = scene() else { return };
    let ground = "getComputedStyle(document.body).backgroundColor";
    let corner = "(() => { const v = tfaot.app.view; v.draw(); return [...v.context.getImageData(2, 2, 1, 1).data].slice(0, 3).reduce((a, b) => a + b); })()";
    let page = opened(&mut s, "norms", &["--no-compile"], "#view=graph");
    let light = (s.browser.text(ground), s.browser.js(corner).as_u64());
    picture(&mut s.browser, "light");
    s.browser.prefer("dark");
    s.browser.open(&page, "#view=graph");
    let dark = (s.browser.text(ground), s.browser.js(corner).as_u64());
    picture(&mut s.browser, "dark");
    assert_ne!(light.0, dark.0);
    assert!(light.1 > Some(600) && dark.1 < Some(150), "{light:?} {dark:?}");
    s.browser.js("document.getElementById('theme').click()");
    assert_eq!(s.browser.text(ground), light.0, "the reader's choice goes before the system's");
}

#[test]
fn names_are_only_text() {
    let Some(mut s) = scene() else { return };
    let page = report_of_text(s.folder.path(), "hostile", &hostile(), &[]);
    s.browser.open(&page, "#view=answer");
    let main = s.browser.text("document.getElementById('answer').textContent");
    assert!(main.contains("<img src=x onerror=window.hacked=4>"), "{main}");
    for (i, name) in HOSTILE.iter().enumerate() {
        let found = format!("tfaot.app.model.find({})", json!(name));
        assert_eq!(s.browser.js(&found), json!(i + 1), "{name}");
        s.browser.js(&format!("location.hash = '#node=' + encodeURIComponent({})", json!(name)));
        s.browser.until(&format!("tfaot.app.selected && tfaot.app.selected.node === {}", i + 1));
        s.browser.js(&format!("(() => {{ const i = document.getElementById('search'); i.value = {}; i.dispatchEvent(new Event('input')); }})()", json!(name)));
        s.browser.until("document.querySelectorAll('#found li').length > 0");
        let svg = "new DOMParser().parseFromString(tfaot.svg(), 'image/svg+xml').querySelectorAll('parsererror, script, img').length";
        assert_eq!(s.browser.js(svg), json!(0));
    }
    let made =
        "document.querySelectorAll('#answer img, #answer script, #inspector img, #inspector svg, #found img').length";
    assert_eq!(s.browser.js(made), json!(0));
    assert_eq!(s.browser.js("typeof window.hacked"), json!("undefined"));
    assert_eq!(s.browser.complaints(), Vec::<&Value>::new(), "nothing even tried");
}

#[test]
fn neighbourhoods_paths_and_edges_are_shown_alone() {
    let Some(mut s) = scene() else { return };
    let page = report_of_text(s.folder.path(), "blocks", &blocks(4_500), &["--no-compile"]);
    s.browser.open(&page, "#node=model/block_0/layer_1/op_51/mul");
    let near = "tfaot.app.model.around(tfaot.app.selected.node, 2, 400).length";
    let near = s.browser.js(near);
    s.browser.js("tfaot.app.neighbourhood(tfaot.app.selected.node, 2)");
    assert_eq!(s.browser.js("tfaot.app.view.boxes.length"), near);
    s.browser.js("document.getElementById('whole').click()");
    s.browser.key("p");
    s.browser.write("model/block_0/layer_2/op_101/out");
    s.browser.key("Enter");
    s.browser.until("tfaot.app.view.part && tfaot.app.view.part.title.startsWith('the path')");
    let way = s.browser.js("tfaot.app.view.part.nodes.map(n => tfaot.app.model.name(n))");
    let way = way.as_array().expect("a list");
    assert_eq!(way.first(), Some(&json!("model/block_0/layer_1/op_51/mul")));
    assert_eq!(way.last(), Some(&json!("model/block_0/layer_2/op_101/out")));
    s.browser.open(&page, "#edge=0");
    assert_eq!(chosen(&mut s.browser), "An edge that joined nothing");
    assert_eq!(s.browser.js("!!tfaot.app.view.red"), json!(true));
    let why = s.browser.text("document.querySelector('#inspector .path').textContent");
    assert!(why.starts_with("TFA05"), "{why}");
    picture(&mut s.browser, "edge");
    s.browser.open(&page, "#node=model/block_0/layer_0/op_1/out");
    let reason = s.browser.text("document.querySelector('#inspector .why').textContent");
    assert!(reason.contains("XLA has no kernel for Print"), "{reason}");
}

/// Boxes of one group lie apart and inside of it, and edges run downwards from box to box.
#[test]
fn layouts_are_tidy() {
    let Some(mut s) = scene() else { return };
    let mut pages: Vec<PathBuf> = Vec::new();
    for graph in ["attention", "functions", "loops", "norms", "slices"] {
        let folder = s.folder.path().join(graph);
        std::fs::create_dir(&folder).expect("a folder");
        pages.push(report(&folder, &testdata(graph), &["--no-compile"]));
    }
    pages.push(report_of_text(s.folder.path(), "blocks", &blocks(1_500), &["--no-compile"]));
    let faults = "(() => { \
        const v = tfaot.app.view, scene = v.scene(), out = []; \
        for (const g of scene.groups.slice(0, 60)) if (!g.gone) scene.setOpen(g.id, true); \
        v.layOut(); \
        const rows = new Map(); \
        for (const b of v.boxes) { if (!rows.has(b.parent)) rows.set(b.parent, []); rows.get(b.parent).push(b); } \
        for (const [parent, all] of rows) { \
            all.sort((a, b) => a.x - b.x); \
            all.forEach((a, i) => { for (let j = i + 1; j < all.length && all[j].x < a.x + a.w - 0.5; j++) { const b = all[j]; \
                if (a.y < b.y + b.h - 0.5 && b.y < a.y + a.h - 0.5) out.push(`${a.label} over ${b.label}`); } }); \
            const p = v.boxes[parent]; \
            if (p) for (const a of all) if (a.x < p.x || a.y < p.y || a.x + a.w > p.x + p.w + 0.5 || a.y + a.h > p.y + p.h + 0.5) out.push(`${a.label} out of ${p.label}`); \
        } \
        for (const w of v.wires) if (!w.back) w.points.forEach(([, y], i) => { if (i && y < w.points[i - 1][1] - 0.5) out.push(`an edge of ${v.boxes[w.a].label} upwards`); }); \
        return [v.boxes.length, out.slice(0, 5)]; })()";
    for page in pages {
        for grouping in ["scope", "cluster"] {
            s.browser.open(&page, &format!("#view=graph&group={grouping}"));
            s.browser.until("document.documentElement.dataset.graph === 'drawn'");
            let found = s.browser.js(faults);
            assert!(found[0].as_u64() > Some(10), "{found}");
            assert_eq!(found[1], json!([]), "{} by {grouping}", page.display());
        }
    }
}

/// Graphs of others, named by `TFAOT_REPORT_GRAPHS` with `:` between them: each is drawn within a second, in both groupings.
#[test]
fn other_graphs_are_drawn() {
    let Some(named) = std::env::var_os("TFAOT_REPORT_GRAPHS") else { return };
    let Some(mut s) = scene() else { return };
    for graph in std::env::split_paths(&named) {
        let name = graph.file_name().map_or_else(String::new, |n| n.to_string_lossy().replace('.', "-"));
        let page = report(s.folder.path(), &graph, &[]);
        for grouping in ["scope", "cluster"] {
            s.browser.open(&page, &format!("#view=graph&group={grouping}"));
            s.browser.until("document.documentElement.dataset.graph === 'drawn'");
            let time = s.browser.js("performance.getEntriesByName('graph-drawn')[0].startTime").as_f64();
            println!("{name} by {grouping}: drawn after {:.0} ms", time.unwrap_or(f64::NAN));
            assert!(time < Some(1000.0), "{name} by {grouping}: {time:?} ms");
            picture(&mut s.browser, &format!("{name}-{grouping}"));
        }
        s.browser.open(&page, "#view=answer");
        picture(&mut s.browser, &format!("{name}-answer"));
        if s.browser.js("tfaot.app.firstCode()").is_null() {
            continue;
        }
        s.browser.key("c");
        s.browser.until("!document.getElementById('drawer').hidden");
        for (key, pane) in [("1", "hlo"), ("2", "kernels"), ("3", "asm"), ("4", "memory"), ("5", "profile")] {
            if s.browser.js(&format!("!document.getElementById('pane-{pane}')")) == json!(false) {
                s.browser.key(key);
            }
            s.browser.key(key);
            assert_eq!(s.browser.text("document.activeElement.className"), format!("body {pane}"), "{name}");
        }
        assert_eq!(s.browser.complaints(), Vec::<&Value>::new(), "{name}");
    }
}

#[test]
fn the_answer_needs_no_script() {
    let Some(mut s) = scene() else { return };
    let page = report(s.folder.path(), &testdata("conv_net"), &[]);
    s.browser.ask("Emulation.setScriptExecutionDisabled", json!({"value": true}));
    s.browser.ask("Page.navigate", json!({"url": format!("file://{}", page.display())}));
    s.browser.until("document.querySelector('.verdict')");
    let told = s.browser.text("document.querySelector('main').innerText");
    assert!(told.contains("of the FLOPs are in 1 cluster") && told.contains("kernels"), "{told}");
    picture(&mut s.browser, "answer");
}
