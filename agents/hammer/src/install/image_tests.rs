use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::*;
use crate::net::resolve::Resolver;

/// A small image.
fn image() -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for n in 0..20_u32 {
        let data: Vec<u8> = (0..50_000_u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> (n % 24)) as u8)
            .collect();
        let mut header = tar::Header::new_gnu();
        header.set_size(data.len() as u64);
        header.set_mode(0o644);
        header.set_uid(u64::from(nix::unistd::Uid::effective().as_raw()));
        header.set_gid(u64::from(nix::unistd::Gid::effective().as_raw()));
        builder
            .append_data(&mut header, format!("file{n}"), &data[..])
            .unwrap();
    }
    zstd::encode_all(&builder.into_inner().unwrap()[..], 1).unwrap()
}

fn digest(bytes: &[u8]) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, bytes);
    let hex: String = hash.as_ref().iter().map(|b| format!("{b:02x}")).collect();
    format!("sha256:{hex}")
}

/// Answers the nth connection with the nth script: a head, then that part of `body`.
struct Server {
    url: String,
    _task: JoinSet<()>,
}

async fn serve(answers: Vec<(String, Vec<u8>)>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/image", listener.local_addr().unwrap());
    let mut task = JoinSet::new();
    task.spawn(async move {
        for (head, body) in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let read = stream.read(&mut request).await.unwrap();
            assert!(read > 0);
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(&body).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    });
    Server { url, _task: task }
}

fn ok(len: usize, extra: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n{extra}Connection: close\r\n\r\n")
}

async fn run(server: &Server, digest: &str) -> (Result<Unpacked, ImageError>, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::open(dir.path()).unwrap();
    let image = Image {
        id: "i".into(),
        url: server.url.clone(),
        digest: digest.into(),
    };
    (
        install(&Http::new(Resolver::default()), &image, root).await,
        dir,
    )
}

#[tokio::test]
async fn a_good_image_arrives() {
    let data = image();
    let server = serve(vec![(ok(data.len(), ""), data.clone())]).await;
    let (done, dir) = run(&server, &digest(&data)).await;
    assert_eq!(done.unwrap().entries, 20);
    assert_eq!(
        std::fs::metadata(dir.path().join("file19")).unwrap().len(),
        50_000
    );
}

#[tokio::test]
async fn a_wrong_digest_is_final() {
    let data = image();
    let server = serve(vec![(ok(data.len(), ""), data.clone())]).await;
    let (done, _dir) = run(&server, &digest(b"other")).await;
    let error = done.unwrap_err();
    assert!(matches!(error, ImageError::Digest { .. }), "{error}");
    assert!(!error.is_retryable());
}

#[tokio::test]
async fn damage_is_told_as_a_wrong_digest() {
    let good = image();
    let mut bad = good.clone();
    let middle = bad.len() / 2;
    bad[middle] ^= 0xff;
    let server = serve(vec![(ok(bad.len(), ""), bad)]).await;
    let (done, _dir) = run(&server, &digest(&good)).await;
    assert!(matches!(done.unwrap_err(), ImageError::Digest { .. }));
}

#[tokio::test]
async fn what_is_no_image_is_told_so() {
    let data = b"this is a web page".to_vec();
    let server = serve(vec![(ok(data.len(), ""), data.clone())]).await;
    let (done, _dir) = run(&server, &digest(&data)).await;
    let error = done.unwrap_err();
    assert!(matches!(error, ImageError::Format(_)), "{error}");
    assert!(!error.is_retryable());
}

#[tokio::test]
async fn an_image_cut_short_may_be_tried_again() {
    let data = image();
    let half = data[..data.len() / 2].to_vec();
    let server = serve(vec![(ok(data.len(), ""), half)]).await;
    let (done, _dir) = run(&server, &digest(&data)).await;
    let error = done.unwrap_err();
    assert!(
        matches!(error, ImageError::Cut { .. } | ImageError::Network { .. }),
        "{error}"
    );
    assert!(error.is_retryable());
}

#[tokio::test]
async fn a_broken_connection_is_continued() {
    let data = image();
    let middle = data.len() / 2;
    let rest = data[middle..].to_vec();
    let head = format!(
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {middle}-{}/{}\r\nContent-Length: {}\r\n\r\n",
        data.len() - 1,
        data.len(),
        rest.len()
    );
    let first = (ok(data.len(), "ETag: \"v1\"\r\n"), data[..middle].to_vec());
    let server = serve(vec![first, (head, rest)]).await;
    let (done, _dir) = run(&server, &digest(&data)).await;
    assert_eq!(done.unwrap().entries, 20);
}

#[tokio::test]
async fn a_missing_image_is_final_and_a_sick_server_is_not() {
    let answer = |status: &str| {
        (
            format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n"),
            Vec::new(),
        )
    };
    let server = serve(vec![answer("404 Not Found")]).await;
    let (done, _dir) = run(&server, &digest(b"")).await;
    assert!(!done.unwrap_err().is_retryable());
    let data = image();
    let server = serve(vec![answer("503 Busy"), (ok(data.len(), ""), data.clone())]).await;
    let (done, _dir) = run(&server, &digest(&data)).await;
    assert!(done.is_ok());
}

#[test]
fn digests() {
    for (text, good) in [
        (format!("sha256:{}", "a".repeat(64)), true),
        (format!("SHA512:{}", "B".repeat(128)), true),
        (format!("sha256:{}", "a".repeat(63)), false),
        (format!("sha256:{}", "g".repeat(64)), false),
        (format!("md5:{}", "a".repeat(32)), false),
        (String::new(), false),
    ] {
        assert_eq!(Digest::parse(&text).is_ok(), good, "{text}");
    }
}
