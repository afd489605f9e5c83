//! As much of S3 as one bucket of backups needs, on loopback: multipart uploads, lists, deletes.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

type Objects = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// A bucket called `backups`.
pub(crate) struct S3 {
    pub(crate) address: SocketAddr,
    objects: Objects,
}

struct Request {
    method: String,
    path: String,
    query: String,
    is_signed: bool,
    body: Vec<u8>,
}

impl S3 {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let objects = Objects::default();
        let parts = Objects::default();
        let shared = Arc::clone(&objects);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (objects, parts) = (Arc::clone(&shared), Arc::clone(&parts));
                std::thread::spawn(move || serve(stream, &objects, &parts));
            }
        });
        Self { address, objects }
    }

    pub(crate) fn put(&self, name: &str, bytes: &[u8]) {
        self.objects
            .lock()
            .unwrap()
            .insert(name.to_owned(), bytes.to_vec());
    }

    pub(crate) fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        self.objects.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, objects: &Objects, parts: &Objects) {
    let Some(request) = read(&stream) else { return };
    let (status, headers, body) = answer(&request, objects, parts);
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n",
        body.len()
    );
    // A client that went away misses the answer.
    let _sent = stream.write_all(&[head.as_bytes(), body.as_bytes()].concat());
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut input = BufReader::new(stream);
    let mut line = String::new();
    input.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let method = words.next()?.to_owned();
    let target = words.next()?.to_owned();
    let (mut length, mut is_signed) = (0, false);
    loop {
        let mut line = String::new();
        input.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok()?,
            "authorization" => is_signed = value.contains("AWS4-HMAC-SHA256"),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    Some(Request {
        method,
        path: path.to_owned(),
        query: query.to_owned(),
        is_signed,
        body,
    })
}

fn answer(request: &Request, objects: &Objects, parts: &Objects) -> (&'static str, String, String) {
    let ok = |body: String| ("200 OK", String::new(), body);
    let name = request
        .path
        .trim_start_matches("/backups")
        .trim_start_matches('/');
    let (name, query) = (name.to_owned(), request.query.as_str());
    if !request.is_signed {
        return ("403 Forbidden", String::new(), String::new());
    }
    match request.method.as_str() {
        "GET" => ok(listing(&objects.lock().unwrap())),
        "POST" if query.starts_with("uploads") => ok(
            "<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>"
                .to_owned(),
        ),
        "PUT" => {
            let number = query
                .split('&')
                .find_map(|it| it.strip_prefix("partNumber="))
                .unwrap();
            let key = format!("{name}#{number:0>6}");
            parts.lock().unwrap().insert(key, request.body.clone());
            ("200 OK", "etag: \"e\"\r\n".to_owned(), String::new())
        }
        "POST" => {
            let mut parts = parts.lock().unwrap();
            let mut whole = Vec::new();
            parts.retain(|key, bytes| {
                let is_mine = key.starts_with(&format!("{name}#"));
                if is_mine {
                    whole.extend_from_slice(bytes);
                }
                !is_mine
            });
            objects.lock().unwrap().insert(name, whole);
            ok("<CompleteMultipartUploadResult><ETag>\"e\"</ETag></CompleteMultipartUploadResult>"
                .to_owned())
        }
        "DELETE" => {
            objects.lock().unwrap().remove(&name);
            ("204 No Content", String::new(), String::new())
        }
        _ => ("400 Bad Request", String::new(), String::new()),
    }
}

/// Everything is old but what was uploaded here and now.
fn listing(objects: &BTreeMap<String, Vec<u8>>) -> String {
    let one = |(name, bytes): (&String, &Vec<u8>)| {
        let year = if bytes.len() < 100 { 2020 } else { 2050 };
        format!(
            "<Contents><Key>{name}</Key><LastModified>{year}-01-01T00:00:00.000Z</LastModified>\
             <ETag>\"e\"</ETag><Size>{}</Size></Contents>",
            bytes.len()
        )
    };
    let all: String = objects.iter().map(one).collect();
    format!("<ListBucketResult><IsTruncated>false</IsTruncated>{all}</ListBucketResult>")
}
