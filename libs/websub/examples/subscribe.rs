//! Both sides of a WebSub subscription, without a network: the request to the hub, the hub's question, and a delivery.
//!
//! ```sh
//! cargo run -p websub --example subscribe
//! ```

use std::error::Error;

use websub::{ASKED_LEASE, Intent, Method, Mode, PushKey, Signature, SubscriptionRequest, judge};

fn main() -> Result<(), Box<dyn Error>> {
    // The secret and the callback follow from the key, so the subscriber stores neither.
    let key = PushKey::new("0123456789abcdef0123456789abcdef")?;
    let secret = key.secret("subscription-1");
    let callback = format!("https://push.example.net/push/subscription-1/{}", key.callback("subscription-1"));
    let request = SubscriptionRequest {
        mode: Mode::Subscribe,
        topic: "http://example.com/dataset1/change/".to_owned(),
        callback: callback.parse()?,
        lease: Some(ASKED_LEASE),
        secret: Some(secret.clone()),
    };
    // The form holds the secret: send it to the hub, and write it to no log.
    println!("POST to the hub, {} bytes; the callback is {}", request.to_form().len(), request.callback);

    let query =
        "hub.mode=subscribe&hub.topic=http%3A%2F%2Fexample.com%2Fdataset1%2Fchange%2F&hub.challenge=42";
    match Intent::parse(query)? {
        Intent::Verify { topic, challenge, .. } if topic == request.topic => {
            println!("the hub verifies the subscription; answer {challenge:?}");
        }
        other => println!("not our subscription; answer 404: {other:?}"),
    }

    let body = b"<urlset/>";
    let signature = Signature::new(Method::Sha256, &secret, body).to_string();
    println!("a delivery with its signature: {:?}", judge(&secret, [signature.as_bytes()], body));
    println!(
        "the same signature, other bytes: {:?}",
        judge(&secret, [signature.as_bytes()], b"<urlset></urlset>")
    );
    Ok(())
}
