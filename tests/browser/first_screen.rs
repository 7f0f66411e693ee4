//! The first screen on wide and narrow windows, light and dark: nothing is cut off, everything can be read.
use super::{Scene, picture, report, scene, testdata};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Widths of a desk, a tablet and a phone.
const WIDTHS: [u64; 3] = [1440, 900, 420];

/// Texts whose contrast with what is behind them is below 4.5 (WCAG 2.1, 1.4.3), with their colours; the ground is that of the next
/// element around that has one.
const FAINT: &str = "(() => { \
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true }); \
    const rgba = c => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; }; \
    const light = c => { const [r, g, b] = rgba(c).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; }; \
    const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (rgba(c)[3] === 255) return c; } return 'white'; }; \
    const found = []; let seen = 0; \
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); \
    while (walk.nextNode()) { \
        const text = walk.currentNode.textContent.trim(), e = walk.currentNode.parentElement; \
        if (!text || ['SCRIPT', 'STYLE', 'NOSCRIPT', 'OPTION', 'TITLE'].includes(e.tagName) || !e.checkVisibility()) continue; \
        seen++; \
        const a = light(getComputedStyle(e).color), b = light(ground(e)); \
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); \
        if (contrast < 4.5) found.push(`${text.slice(0, 40)} ${getComputedStyle(e).color} on ${ground(e)}: ${contrast.toFixed(2)}`); \
    } \
    return [seen, [...new Set(found)]]; })()";

/// What reaches beyond the window on the right, though nothing around it scrolls.
const BEYOND: &str = "[...document.querySelectorAll('body *')].filter(e => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth + 1 \
    && ![...(function* () { for (let p = e.parentElement; p; p = p.parentElement) yield p; })()].some(p => ['auto', 'scroll', 'hidden'].includes(getComputedStyle(p).overflowX) && p.id !== 'answer' && p !== document.body)) \
    .map(e => `${e.tagName} ${e.className} ${e.textContent.trim().slice(0, 40)}`).slice(0, 5)";

fn judge(scene: &mut Scene, page: &Path, name: &str) {
    for scheme in ["light", "dark"] {
        scene.browser.prefer(scheme);
        for width in WIDTHS {
            let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
            scene.browser.ask("Emulation.setDeviceMetricsOverride", size);
            for view in ["answer", "graph"] {
                let fragment = if view == "graph" { "#code=m0&panes=asm,profile" } else { "#view=answer" };
                scene.browser.open(page, fragment);
                if view == "graph" {
                    scene.browser.until("document.querySelector('.asm .lines div') && document.documentElement.dataset.graph === 'drawn'");
                }
                let seen = scene.browser.js(FAINT);
                assert!(seen[0].as_u64() > Some(20), "{name}: {seen}");
                assert_eq!(seen[1], json!([]), "{name}, {view} at {width}, {scheme}");
                assert_eq!(scene.browser.js(BEYOND), json!([]), "{name}, {view} at {width}");
                picture(&mut scene.browser, &format!("{name}-{view}-{width}-{scheme}"));
                assert_eq!(scene.browser.complaints(), Vec::<&Value>::new());
            }
        }
    }
}

#[test]
fn it_fits_and_can_be_read() {
    let Some(mut s) = scene() else { return };
    let signatures = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/signatures");
    let page = report(s.folder.path(), &signatures, &["--dim", "2"]);
    judge(&mut s, &page, "signatures");
    let page = report(s.folder.path(), &testdata("conv_net"), &["--profile", "--seconds", "0"]);
    judge(&mut s, &page, "conv_net");
}

/// The same of models that `TFAOT_REPORT_MODELS` names, with `:` between them.
#[test]
fn other_models_fit() {
    let Some(named) = std::env::var_os("TFAOT_REPORT_MODELS") else { return };
    let Some(mut s) = scene() else { return };
    for model in std::env::split_paths(&named) {
        let folder: PathBuf = s.folder.path().join("other");
        std::fs::create_dir_all(&folder).expect("a folder");
        let page = report(&folder, &model, &["--profile", "--seconds", "0.2"]);
        let name = model.parent().and_then(Path::file_name).expect("a folder").to_string_lossy().into_owned();
        judge(&mut s, &page, &name);
    }
}

/// The page leads from a kernel of the first screen to its machine code, which is the one that is lit.
#[test]
fn a_kernel_leads_to_its_code() {
    let Some(mut s) = scene() else { return };
    let page = report(s.folder.path(), &testdata("conv_net"), &["--profile", "--seconds", "0"]);
    s.browser.open(&page, "#view=answer");
    let link = s.browser.text("document.querySelectorAll('.hot a')[1].getAttribute('href')");
    s.browser.js("document.querySelectorAll('.hot a')[1].click()");
    s.browser.until("document.querySelector('.asm .lines .lit')");
    let kernel = link.rsplit_once("kernel=").expect("a kernel").1.to_string();
    let lit = s.browser.text("document.querySelector('.asm .lines .lit').textContent");
    assert!(lit.ends_with(&format!("_k{kernel}:")), "{lit} for {link}");
    assert!(s.browser.text("document.getElementById('drawer-title').textContent").starts_with("The whole model: "));
    // A statement lights in its loops and in its machine code, whichever it is chosen in.
    s.browser.open(&page, &link.replacen('#', "#panes=kernels,asm&", 1));
    s.browser.until("document.querySelector('.asm .lines .lit') && document.querySelector('.kernels .lines .lit')");
    let at = "(p => p.of.findIndex(o => o.line > 2))(tfaot.app.codeView.parts.asm)";
    s.browser.js(&format!("tfaot.app.codeView.parts.asm.lines.onChoose({at})"));
    let chosen = "tfaot.app.codeView.chosen";
    let lit = |s: &mut Scene, pane: &str| {
        s.browser.until(&format!("document.querySelector('.{pane} .lines .lit')"));
        s.browser.js(&format!(
            "(p => p.lines.lines.filter((_, i) => p.lines.isLit(i)).length)(tfaot.app.codeView.parts.{pane})"
        ))
    };
    assert!(s.browser.js(&format!("{chosen}.line")).as_u64() > Some(2));
    assert!(lit(&mut s, "asm").as_u64() > Some(0));
    assert_eq!(lit(&mut s, "kernels"), json!(1));
    let own = s.browser.js(&format!("(p => p.lines.lines.findIndex((_, i) => p.lines.isLit(i)) - p.of.findIndex(o => o.kernel === {chosen}.kernel) + 1 === {chosen}.line)(tfaot.app.codeView.parts.kernels)"));
    assert_eq!(own, json!(true));
    // Without a kernel in the address the hottest is open.
    s.browser.open(&page, "#code=m0");
    s.browser.until("document.querySelector('.asm .lines .lit')");
    let times = "tfaot.app.codeView.index.code.kernels.map(k => k.ms)";
    let most = s.browser.js(&format!("(t => t.indexOf(Math.max(...t)))({times})"));
    assert_eq!(s.browser.js("tfaot.app.codeView.chosen.kernel"), most);
}
