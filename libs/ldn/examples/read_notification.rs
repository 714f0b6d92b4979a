//! Reads a Linked Data Notification and prints what it says, then writes one. Without a path it reads one of its own.
//!
//! ```sh
//! cargo run -p ldn --example read_notification -- notification.json
//! ```

use std::error::Error;

use ldn::{Announcement, Limits, Notification};

const BODY: &[u8] = br#"{
  "@context": ["https://www.w3.org/ns/activitystreams", "https://coar-notify.net"],
  "type": "Announce",
  "origin": {"id": "https://repo.example.org/system"},
  "object": {"id": "https://repo.example.org/articles/7.pdf"}
}"#;

fn main() -> Result<(), Box<dyn Error>> {
    let body = match std::env::args_os().nth(1) {
        Some(path) => std::fs::read(path)?,
        None => BODY.to_vec(),
    };
    let notification = Notification::read(&body, &Limits::default())?;
    println!("activity: {:?}, origin: {:?}", notification.activity, notification.origin);
    for object in &notification.objects {
        println!("about {object}");
    }

    let announcement = Announcement {
        id: "urn:uuid:6ba7b810-9dad-81d1-80b4-00c04fd430c8".to_owned(),
        actor: None,
        object: "https://repo.example.org/.well-known/resourcesync".parse()?,
        target: "https://index.example.com/".parse()?,
        stored: 12,
        deleted: 1,
        from: "2026-03-01T12:00:00Z".parse()?,
        until: "2026-03-01T12:00:05Z".parse()?,
    };
    println!("{:#}", announcement.to_json());
    Ok(())
}
