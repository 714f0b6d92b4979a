//! An observer is called for all requests, until their responses have ended.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::Origin;
use testkit::scripted::{Reply, ScriptedServer};
use web::{Client, Exchange, Observer};

use crate::support::{config, request};

#[derive(Debug, Default, Clone)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn all(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Observer for Heard {
    fn begin(&self, _: &Origin) -> Box<dyn Exchange> {
        self.note("begun");
        Box::new(Self::clone(self))
    }
}

impl Exchange for Heard {
    fn answered(&mut self, status: Option<u16>, _: Duration) {
        self.note(format!("answered {status:?}"));
    }

    fn received(&mut self, bytes: u64) {
        self.note(format!("received {bytes}"));
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        // The test's own and the client's are the other two.
        if Arc::strong_count(&self.0) == 3 {
            self.note("ended");
        }
    }
}

#[tokio::test]
async fn each_request_is_heard_of_from_its_beginning_to_the_end_of_its_body() {
    let server = ScriptedServer::start().await.unwrap();
    server.always("/a", Reply::status(302).header("location", "/b"));
    server.always("/b", Reply::ok("abc"));
    let heard = Heard::default();
    let client = Client::new(config()).unwrap();
    client.observe(Arc::new(heard.clone()));
    let mut response = client.get(request(&server.uri("/a"))).await.unwrap();
    let begun = ["begun", "answered Some(302)", "ended", "begun", "answered Some(200)"];
    assert_eq!(heard.all(), begun);
    while response.chunk().await.unwrap().is_some() {}
    assert_eq!(heard.all(), ["received 3", "ended"]);

    // No server listens at a port that was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = request(&format!("http://{free}/"));
    client.get(nobody).await.unwrap_err();
    assert_eq!(heard.all(), ["begun", "answered None", "ended"]);
}
