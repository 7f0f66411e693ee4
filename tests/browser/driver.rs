//! Chromium without a window, driven through its DevTools protocol over two pipes.
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const NAMES: &[&str] = &["chromium", "chromium-browser", "google-chrome"];
/// No answer of a browser takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// One page of one browser.
pub struct Browser {
    child: Child,
    to: File,
    from: Receiver<Value>,
    next: u64,
    session: Option<String>,
    /// What the browser told by itself since the last page was opened.
    pub events: Vec<Value>,
    _folder: tempfile::TempDir,
}

impl Browser {
    /// A browser with an empty page of 1440x900, or `None`, with a word about it, where there is none. With
    /// `TFAOT_TOOLS=required` that is a failure.
    pub fn start() -> Option<Browser> {
        let runs = |p: &&&str| Command::new(**p).arg("--version").output().is_ok_and(|o| o.status.success());
        let Some(program) = NAMES.iter().find(runs) else {
            let required = std::env::var("TFAOT_TOOLS").is_ok_and(|v| v == "required");
            assert!(!required, "no browser is installed: {NAMES:?}");
            eprintln!("SKIPPED: none of {NAMES:?} is installed; `tools/setup chromium` installs one");
            return None;
        };
        let folder = tempfile::tempdir().expect("a scratch folder");
        let (into, out) = (folder.path().join("in"), folder.path().join("out"));
        let made = Command::new("mkfifo").args([&into, &out]).status();
        assert!(made.is_ok_and(|s| s.success()), "mkfifo makes pipes");
        // The browser reads what it is asked on descriptor 3 and answers on 4.
        let line = "exec \"$0\" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
             --no-first-run --user-data-dir=\"$1\" --remote-debugging-pipe 3<\"$2\" 4>\"$3\"";
        let child = Command::new("sh")
            .args(["-c", line, program])
            .args([&folder.path().join("profile"), &into, &out])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("there is a shell");
        let to = File::options().write(true).open(&into).expect("the browser listens");
        let answers = File::open(&out).expect("the browser answers");
        let mut browser =
            Browser { child, to, from: messages(answers), next: 0, session: None, events: Vec::new(), _folder: folder };
        let page = browser.ask("Target.createTarget", json!({"url": "about:blank"}));
        let target = page["targetId"].clone();
        let session = browser.ask("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        browser.session = session["sessionId"].as_str().map(str::to_string);
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.ask(&format!("{domain}.enable"), json!({}));
        }
        let size = json!({"width": 1440, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        browser.ask("Emulation.setDeviceMetricsOverride", size);
        browser.prefer("light");
        Some(browser)
    }

    /// The result of a command.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(message.to_string().as_bytes()).expect("the browser reads");
        self.to.write_all(&[0]).expect("the browser reads");
        loop {
            let answer = self.from.recv_timeout(PATIENCE).unwrap_or_else(|e| panic!("{method}: {e}"));
            if answer["id"] == json!(self.next) {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    /// Lets pages see that the reader prefers `light` or `dark`.
    pub fn prefer(&mut self, scheme: &str) {
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.ask("Emulation.setEmulatedMedia", features);
    }

    /// The value of an expression; promises are waited for.
    pub fn js(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.ask("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}\n{}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// The text that an expression gives.
    pub fn text(&mut self, expression: &str) -> String {
        self.js(expression).as_str().unwrap_or_default().to_string()
    }

    /// Opens a file and waits until its script is ready.
    pub fn open(&mut self, file: &Path, fragment: &str) {
        self.ask("Page.navigate", json!({"url": "about:blank"}));
        self.events.clear();
        self.ask("Page.navigate", json!({"url": format!("file://{}{fragment}", file.display())}));
        self.until("document.documentElement?.dataset.ready === 'yes'");
    }

    /// Waits until an expression is true.
    pub fn until(&mut self, expression: &str) {
        let start = Instant::now();
        while self.js(&format!("!!({expression})")) != json!(true) {
            assert!(start.elapsed() < PATIENCE, "never: {expression}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Presses and lets go of a key.
    pub fn key(&mut self, key: &str) {
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            "Tab" => 9,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => 0,
        };
        let text = if key == "Enter" {
            "\r"
        } else if key.len() == 1 {
            key
        } else {
            ""
        };
        let down = json!({"type": if text.is_empty() { "rawKeyDown" } else { "keyDown" }, "key": key, "text": text, "windowsVirtualKeyCode": code});
        self.ask("Input.dispatchKeyEvent", down);
        self.ask("Input.dispatchKeyEvent", json!({"type": "keyUp", "key": key, "windowsVirtualKeyCode": code}));
    }

    /// Types into what has the focus.
    pub fn write(&mut self, text: &str) {
        self.ask("Input.insertText", json!({"text": text}));
    }

    /// Clicks `count` times at a place of the page.
    pub fn click(&mut self, x: f64, y: f64, count: u64) {
        for n in 1..=count {
            for kind in ["mousePressed", "mouseReleased"] {
                let event = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": n});
                self.ask("Input.dispatchMouseEvent", event);
            }
        }
    }

    /// Writes what is seen to a PNG file.
    pub fn picture(&mut self, file: &Path) {
        let shot = self.ask("Page.captureScreenshot", json!({"format": "png"}));
        let text = shot["data"].as_str().expect("base64");
        let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text).expect("base64");
        std::fs::write(file, bytes).expect("written");
    }

    /// Errors and exceptions of the page.
    pub fn complaints(&self) -> Vec<&Value> {
        let wrong = |e: &&Value| {
            e["method"] == "Runtime.exceptionThrown"
                || e["method"] == "Log.entryAdded" && e["params"]["entry"]["level"] == "error"
        };
        self.events.iter().filter(wrong).collect()
    }

    /// What the page asked for, but the file itself.
    pub fn requests(&self) -> Vec<&str> {
        let asked = self.events.iter().filter(|e| e["method"] == "Network.requestWillBeSent");
        let urls = asked.filter_map(|e| e["params"]["request"]["url"].as_str());
        urls.filter(|url| !url.starts_with("file://") && !url.starts_with("blob:")).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The messages of the browser, each ended by a zero byte, read by a thread of their own.
fn messages(mut from: File) -> Receiver<Value> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let (mut open, mut bytes) = (Vec::new(), vec![0; 1 << 16]);
        while let Ok(n) = from.read(&mut bytes) {
            if n == 0 {
                return;
            }
            open.extend_from_slice(&bytes[..n]);
            while let Some(end) = open.iter().position(|&b| b == 0) {
                let message: Vec<u8> = open.drain(..=end).collect();
                let Ok(value) = serde_json::from_slice(&message[..end]) else { return };
                if send.send(value).is_err() {
                    return;
                }
            }
        }
    });
    receive
}
