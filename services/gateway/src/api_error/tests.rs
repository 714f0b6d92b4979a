use super::*;

async fn told(response: Response) -> serde_json::Value {
    let bytes = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

#[tokio::test]
async fn a_refusal_says_what_where_and_what_to_do() {
    let refusal = ApiError::invalid("no").fields([("mode", "an audit".to_owned())]).after_seconds(3);
    let response = render(refusal.into_response(), "/v1/sources");
    assert_eq!(response.headers()[header::CONTENT_TYPE], PROBLEM_JSON);
    assert_eq!(response.headers()[header::RETRY_AFTER], "3");
    let said = told(response).await;
    assert_eq!((&said["status"], &said["instance"]), (&422.into(), &"/v1/sources".into()));
    assert_eq!(said["type"], "urn:thresher:problem:invalid");
    assert_eq!(said["errors"][0]["field"], "mode");
}

#[tokio::test]
async fn what_the_router_refuses_has_the_same_form_and_keeps_its_headers() {
    let bare = (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET")], "text").into_response();
    let response = render(bare, "/v1/x");
    assert_eq!(response.headers()[header::ALLOW], "GET");
    assert_eq!(told(response).await["type"], "urn:thresher:problem:method-not-allowed");
    let fine = render("fine".into_response(), "/");
    assert_eq!(fine.status(), StatusCode::OK);
}
