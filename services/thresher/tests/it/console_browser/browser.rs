//! A browser on the console.

use fantoccini::elements::Element;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::json;
use testkit::servers::ChromeDriver;
use testkit::waiting::found;

/// Checks that hold for every page. The script runs in the page and returns the defects as text.
const ACCESSIBLE: &str = include_str!("accessible.js");

/// A browser, with its driver.
#[derive(Debug)]
pub(crate) struct Browser {
    pub(crate) page: Client,
    base: String,
    /// It ends after the browser.
    driver: ChromeDriver,
}

impl Browser {
    /// Opens the console at `base`.
    pub(crate) async fn start(base: &str) -> Self {
        Self::with(base, true).await
    }

    /// The same, with JavaScript or without.
    pub(crate) async fn with(base: &str, javascript: bool) -> Self {
        let driver = ChromeDriver::start().await.expect("ChromeDriver");
        let mut options = json!({"binary": driver.chromium(), "args": driver.arguments("one")});
        if !javascript {
            options["prefs"] = json!({"profile.managed_default_content_settings.javascript": 2});
        }
        let wanted =
            [("browserName".to_owned(), json!("chrome")), ("goog:chromeOptions".to_owned(), options)];
        let mut builder = ClientBuilder::new(HttpConnector::new());
        let page = builder.capabilities(wanted.into_iter().collect()).connect(driver.url()).await;
        let page = page.expect("a browser");
        Self { page, base: base.to_owned(), driver }
    }

    /// Opens a page.
    pub(crate) async fn open(&self, path: &str) {
        self.page.goto(&format!("{}{path}", self.base)).await.expect("the page comes");
    }

    /// Signs in with a token.
    pub(crate) async fn sign_in(&self, token: &str) {
        self.open("/console").await;
        self.write("Token", token).await;
        self.press("Sign in").await;
    }

    /// Writes into the field with this label.
    pub(crate) async fn write(&self, label: &str, text: &str) {
        let field = self.labelled(label).await;
        field.clear().await.expect("it is a field");
        field.send_keys(text).await.expect("it takes a text");
    }

    /// Ticks, or chooses, what has this label.
    pub(crate) async fn choose(&self, label: &str) {
        self.labelled(label).await.click().await.expect("it can be clicked");
    }

    async fn labelled(&self, label: &str) -> Element {
        let path = format!("//*[@id = //label[starts-with(normalize-space(.), '{label}')]/@for]");
        self.one(&path).await
    }

    /// Presses the button that begins with these words.
    pub(crate) async fn press(&self, words: &str) {
        let button = self.one(&format!("//main//button[starts-with(normalize-space(.), '{words}')]")).await;
        button.click().await.expect("it can be clicked");
    }

    /// Follows the link that begins with these words.
    pub(crate) async fn follow(&self, words: &str) {
        let link = self.one(&format!("//main//a[starts-with(normalize-space(.), '{words}')]")).await;
        link.click().await.expect("it can be clicked");
    }

    /// The first element of an XPath, as soon as there is one.
    async fn one(&self, path: &str) -> Element {
        found(format!("{path} on the page"), async || self.page.find(Locator::XPath(path)).await.ok()).await
    }

    /// Waits until the page contains this text.
    pub(crate) async fn says(&self, words: &str) {
        // Between two pages there may be none for a moment.
        found(format!("the page says {words:?}"), async || {
            let text = self.page.find(Locator::Css("main")).await.ok()?.text().await.ok()?;
            text.contains(words).then_some(())
        })
        .await;
    }

    /// Whether the page's script has run.
    pub(crate) async fn runs_scripts(&self) -> bool {
        let asked = self.page.execute("return typeof htmx", Vec::new()).await;
        asked.is_ok_and(|said| said == "object")
    }

    /// The browser's URL.
    pub(crate) async fn place(&self) -> String {
        self.page.current_url().await.expect("a page").path().to_owned()
    }

    /// Checks that the page has no barrier for users who do not see it, or use no mouse.
    pub(crate) async fn is_accessible(&self) {
        let found = self.page.execute(ACCESSIBLE, Vec::new()).await.expect("the page answers");
        let wrong: Vec<String> = serde_json::from_value(found).expect("a list of texts");
        assert!(wrong.is_empty(), "{}: {wrong:#?}", self.place().await);
    }

    /// Ends the browser, and then its driver.
    pub(crate) async fn end(self) {
        self.page.close().await.expect("the browser ends");
        drop(self.driver);
    }
}
