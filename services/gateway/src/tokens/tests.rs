use super::*;

const RATE: NonZeroU32 = NonZeroU32::new(2).unwrap();
const SECRET: &str = "correct horse battery";

fn tokens(text: &str) -> anyhow::Result<Tokens> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    Tokens::of_file(file.path(), RATE)
}

fn hash(token: &str) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(token.as_bytes()))
}

#[test]
fn a_token_is_known_by_itself_or_by_its_hash_and_no_other_is() {
    let other = "another long token";
    let text = format!(
        "- {{name: a, role: read, token: {SECRET}}}\n- {{name: b, role: admin, sha256: {}}}\n",
        hash(other)
    );
    let tokens = tokens(&text).unwrap();
    let role = |token| tokens.find(token).map(|caller| caller.role());
    assert_eq!(role(Some(SECRET)), Some(Role::Read));
    assert_eq!(role(Some(other)), Some(Role::Admin));
    for bad in [None, Some(""), Some("correct horse batter"), Some(hash(other).as_str())] {
        assert_eq!(role(bad), None, "{bad:?}");
    }
    assert_eq!(Tokens::not_required(RATE).find(None).map(|caller| caller.role()), Some(Role::Admin));
}

#[test]
fn a_mark_leads_to_its_token_with_its_secret_alone() {
    let tokens = tokens(&format!("- {{name: a, role: read, token: {SECRET}}}")).unwrap();
    let mark = tokens.find(Some(SECRET)).unwrap().mark("one");
    assert_eq!(tokens.find_marked("one", &mark).unwrap().name(), "a");
    assert!(tokens.find_marked("two", &mark).is_none());
    assert!(tokens.find_marked("one", &mark[..31]).is_none());
    tokens.take("- {name: a, role: read, token: a token of another kind}").unwrap();
    assert!(tokens.find_marked("one", &mark).is_none(), "it is not good any more");
}

#[tokio::test]
async fn a_token_that_is_taken_out_or_changed_is_told_to_those_who_were_let_in_with_it() {
    let other = "- {name: b, role: admin, token: a token of another kind}";
    let both = format!("- {{name: a, role: operate, token: {SECRET}}}\n{other}");
    let tokens = tokens(&both).unwrap();
    let [caller, kept] = [SECRET, "a token of another kind"].map(|token| tokens.find(Some(token)).unwrap());
    let mut changes = tokens.changes();
    tokens.take(&both).unwrap();
    changes.changed().await.unwrap();
    assert!(tokens.is_good(&caller) && tokens.is_good(&kept), "nothing has changed");
    tokens.take(&both.replace("operate", "read")).unwrap();
    changes.changed().await.unwrap();
    assert!(!tokens.is_good(&caller) && tokens.is_good(&kept));
    let anonymous = Tokens::not_required(RATE);
    assert!(anonymous.is_good(&anonymous.find(None).unwrap()));
}

#[test]
fn what_makes_no_sense_is_refused_and_no_token_repeated() {
    let same = format!(
        "- {{name: a, role: read, token: {SECRET}}}\n- {{name: b, role: read, sha256: {}}}",
        hash(SECRET)
    );
    for (text, why) in [
        ("[]", "no token"),
        ("hunter2-hunter2-hunter2", "no list"),
        ("- {name: a, role: king, token: hunter2-hunter2-hunter2}", "no list"),
        ("- {name: a, role: read, token: hunter2}", "fewer than 16"),
        ("- {name: a, role: read}", "one of token and sha256"),
        ("- {name: a, role: read, sha256: hunter2}", "64 hexadecimal"),
        ("- {name: a, role: read, match: 'country==jp', token: hunter2-hunter2-hunter2}", "`match` of a"),
        ("- {name: a, role: read, match: '', token: hunter2-hunter2-hunter2}", "selector is empty"),
        (same.as_str(), "the same token"),
    ] {
        let said = format!("{:#}", tokens(text).unwrap_err());
        assert!(said.contains(why) && !said.contains("hunter2") && !said.contains(SECRET), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_changed_file_counts_and_one_that_makes_no_sense_changes_nothing() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let write = |text: &str| std::fs::write(file.path(), text).unwrap();
    write(&format!("- {{name: a, role: read, token: {SECRET}}}"));
    let tokens = Tokens::of_file(file.path(), RATE).unwrap();
    let stop = CancellationToken::new();
    let following = tokio::spawn(tokens.clone().follow(file.path().to_owned(), stop.clone()));
    let role = |token: &str| tokens.find(Some(token)).map(|caller| caller.role());
    tokio::time::sleep(serving::token_file::REREAD_EVERY * 2).await;
    write("- nonsense");
    tokio::time::sleep(serving::token_file::REREAD_EVERY * 3).await;
    assert_eq!(role(SECRET), Some(Role::Read));
    write("- {name: a, role: operate, token: a token of another kind}");
    testkit::waiting::until("the new token is known", || {
        role("a token of another kind") == Some(Role::Operate)
    })
    .await;
    assert_eq!(role(SECRET), None);
    stop.cancel();
    following.await.unwrap();
}

#[test]
fn a_token_is_for_all_sources_or_for_those_with_its_labels() {
    let spec = |labels: &[(&str, &str)]| {
        let mut spec = Spec::new("https://example.org/".parse().unwrap());
        spec.labels =
            labels.iter().map(|(key, value)| (key.parse().unwrap(), value.parse().unwrap())).collect();
        spec
    };
    let line = format!("- {{name: a, role: read, match: 'country=jp,!test', token: {SECRET}}}");
    let tokens = tokens(&line).unwrap();
    let caller = tokens.find(Some(SECRET)).unwrap();
    assert!(!caller.sees_all() && caller.sees(&spec(&[("country", "jp")])));
    assert!(!caller.sees(&spec(&[])) && !caller.sees(&spec(&[("country", "jp"), ("test", "yes")])));
    tokens.take(&line).unwrap();
    assert!(tokens.is_good(&caller), "nothing has changed");
    tokens.take(&line.replace("jp", "de")).unwrap();
    assert!(!tokens.is_good(&caller), "who was let in with other labels is asked again");
    assert!(Tokens::not_required(RATE).find(None).unwrap().sees_all());
}

#[test]
fn one_request_too_many_is_told_when_to_come_again() {
    let tokens = Tokens::not_required(RATE);
    let caller = tokens.find(None).unwrap();
    assert_eq!([caller.count_request(), caller.count_request()], [Ok(()), Ok(())]);
    assert_eq!(caller.count_request(), Err(1));
}
