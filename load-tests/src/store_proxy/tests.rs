use super::*;

/// A server that responds to each request with the count of bytes that it got.
async fn counting() -> (String, JoinSet<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut piece = vec![0; 1 << 20];
        loop {
            let read = stream.read(&mut piece).await.unwrap();
            if read == 0 {
                return;
            }
            stream.write_all(format!("{read};").as_bytes()).await.unwrap();
        }
    });
    (url, serving)
}

#[tokio::test]
async fn each_response_is_late_by_the_delay_and_each_request_is_noted() {
    let (server, _serving) = counting().await;
    let delay = Duration::from_millis(50);
    let proxy = StoreProxy::start(&server, delay).await.unwrap();
    let address = proxy.endpoint().trim_start_matches("http://").to_owned();
    let mut client = TcpStream::connect(address).await.unwrap();
    let put = "PUT /b/harvest/packs/a HTTP/1.1\r\nContent-Length: 5\r\n\r\n12345";
    let get = "GET /b/harvest/catalogs/a-1/wal/1.sst HTTP/1.1\r\n\r\n";
    let began = Instant::now();
    for request in [put, get] {
        client.write_all(request.as_bytes()).await.unwrap();
        let mut answer = vec![0; 64];
        let read = client.read(&mut answer).await.unwrap();
        assert_eq!(&answer[..read], format!("{};", request.len()).as_bytes());
    }
    assert!(began.elapsed() >= delay * 2, "{:?}", began.elapsed());
    let passed = proxy.after(0);
    let noted: Vec<_> = passed.iter().map(|passed| (passed.method, passed.part.as_str())).collect();
    assert_eq!(noted, [("put", "packs"), ("get", "catalog_wal")]);
    assert_eq!((proxy.count(), proxy.after(1).len()), (2, 1));
}

#[tokio::test]
async fn a_server_is_named_by_its_ip_address() {
    assert!(StoreProxy::start("https://example.org", Duration::ZERO).await.is_err());
}
