//! The console's pages, as a browser without JavaScript requests them.

use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, StatusCode, redirect};
use url::form_urlencoded;

use super::api::{Answer, Api, send};

/// A visitor of the console.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    client: Client,
    base: String,
    cookie: Option<String>,
}

impl Visitor {
    /// A visitor who has not signed in.
    pub(crate) fn of(api: &Api) -> Self {
        let client = Client::builder().no_proxy().redirect(redirect::Policy::none());
        let client = client.timeout(Duration::from_secs(240)).build().expect("a client");
        Self { client, base: api.base.clone(), cookie: None }
    }

    /// The same, signed in with this token.
    pub(crate) async fn signed_in(&self, token: &str) -> Self {
        let answer = self.post("/console/sign-in", &[("token", token)]).await.is(StatusCode::SEE_OTHER);
        let cookie = answer.header("set-cookie").split(';').next().expect("a cookie").to_owned();
        Self { cookie: Some(cookie), ..self.clone() }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.base));
        match &self.cookie {
            Some(cookie) => request.header("cookie", cookie),
            None => request,
        }
    }

    /// A page.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        send(self.request(Method::GET, path)).await
    }

    /// Its text, if there is one.
    #[track_caller]
    pub(crate) fn page(&self, path: &str) -> impl Future<Output = String> {
        let asked = self.request(Method::GET, path);
        let path = path.to_owned();
        async move {
            let answer = send(asked).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
            assert_eq!(answer.header("content-type"), "text/html; charset=utf-8", "{path}");
            answer.text()
        }
    }

    /// Sends a form from a page of ours.
    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.post_from(&self.base, path, fields).await
    }

    /// Sends a form from a page of that origin.
    pub(crate) async fn post_from(&self, origin: &str, path: &str, fields: &[(&str, &str)]) -> Answer {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let request = self.request(Method::POST, path).header("origin", origin);
        send(request.header("content-type", "application/x-www-form-urlencoded").body(body)).await
    }
}

impl Answer {
    /// Its text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}
