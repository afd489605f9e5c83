//! Writes `XClient`, `trait X`, `XServer` and the method constants of each service.

use prost_build::{Method, Service, ServiceGenerator};

use crate::table::Table;

pub(crate) struct Generator {
    table: Table,
    /// Paths of every constant, for the table of all methods.
    all: Vec<String>,
}

impl Generator {
    pub(crate) fn new(table: Table) -> Self {
        Self {
            table,
            all: Vec::new(),
        }
    }

    fn constants(&mut self, service: &Service, module: &str, out: &mut String) {
        put(
            out,
            &format!(
                "/// Methods of `{}`.\npub mod {module} {{",
                service.proto_name
            ),
        );
        put(out, "use proto_link::{Audit, CallerKind, MethodSpec};");
        for method in &service.methods {
            let name = format!(
                "{}.{}/{}",
                service.package, service.proto_name, method.proto_name
            );
            let options = &self.table[&name];
            let callers: Vec<String> = options
                .callers
                .iter()
                .map(|c| format!("CallerKind::{c}"))
                .collect();
            let upper = method.name.to_uppercase();
            method.comments.append_with_indent(0, out);
            put(
                out,
                &format!(
                    "pub static {upper}: MethodSpec = MethodSpec {{ path: \"/{name}\", \
                 callers: &[{}], audit: Audit::{}, streaming: {} }};",
                    callers.join(", "),
                    options.audit,
                    method.server_streaming
                ),
            );
            self.all.push(format!("&{module}::{upper}"));
        }
        let list: Vec<String> = service
            .methods
            .iter()
            .map(|m| format!("&{}", m.name.to_uppercase()))
            .collect();
        put(
            out,
            &format!(
                "/// All of them.\npub static METHODS: &[&MethodSpec] = &[{}];\n}}",
                list.join(", ")
            ),
        );
    }
}

impl ServiceGenerator for Generator {
    fn generate(&mut self, service: Service, out: &mut String) {
        assert!(
            service.methods.iter().all(|m| !m.client_streaming),
            "{}: client streams are not part of the link",
            service.name
        );
        let module = snake(&service.name);
        self.constants(&service, &module, out);
        client(&service, &module, out);
        server(&service, &module, out);
    }

    fn finalize_package(&mut self, package: &str, out: &mut String) {
        if package == "metalmesh.mesh.v1" {
            put(
                out,
                &format!(
                    "/// Every method of the mesh.\npub static METHODS: \
                 &[&proto_link::MethodSpec] = &[{}];",
                    self.all.join(", ")
                ),
            );
        }
    }
}

fn client(service: &Service, module: &str, out: &mut String) {
    let name = &service.name;
    service.comments.append_with_indent(0, out);
    put(
        out,
        &format!(
            "/// Calls `{name}` of control.\n#[derive(Clone, Debug)]\npub struct {name}Client {{ mesh: \
         proto_link::MeshClient }}\n\
         impl From<proto_link::MeshClient> for {name}Client {{\n\
         fn from(mesh: proto_link::MeshClient) -> Self {{ Self {{ mesh }} }}\n}}\n\
         impl {name}Client {{\n\
         /// The same with another deadline for each call.\n\
         #[must_use]\n\
         pub fn with_deadline(&self, deadline: std::time::Duration) -> Self {{\n\
         Self {{ mesh: self.mesh.with_deadline(deadline) }}\n}}"
        ),
    );
    for Method {
        name,
        input_type,
        output_type,
        server_streaming,
        comments,
        ..
    } in &service.methods
    {
        let spec = format!("{module}::{}", name.to_uppercase());
        comments.append_with_indent(0, out);
        let (result, call) = if *server_streaming {
            (
                format!("proto_link::Streaming<{output_type}>"),
                "server_streaming",
            )
        } else {
            (output_type.clone(), "unary")
        };
        put(
            out,
            &format!(
                "pub async fn {name}(&self, request: {input_type}) -> Result<{result}, \
             proto_link::LinkStatus> {{\nself.mesh.{call}(&{spec}, &request).await\n}}"
            ),
        );
    }
    out.push_str("}\n");
}

fn server(service: &Service, module: &str, out: &mut String) {
    let name = &service.name;
    put(
        out,
        &format!("/// Serves `{name}`.\npub trait {name}: Send + Sync + 'static {{"),
    );
    for Method {
        name,
        input_type,
        output_type,
        server_streaming,
        comments,
        ..
    } in &service.methods
    {
        comments.append_with_indent(1, out);
        let (sink, result) = if *server_streaming {
            (
                format!(", out: proto_link::Sink<'_, {output_type}>"),
                "()".to_owned(),
            )
        } else {
            (String::new(), output_type.clone())
        };
        put(
            out,
            &format!(
                "fn {name}(&self, peer: &proto_link::Peer, request: {input_type}{sink}) -> impl \
             std::future::Future<Output = Result<{result}, proto_link::LinkStatus>> + Send;"
            ),
        );
    }
    put(out, "}");
    router_entry(service, module, out);
}

fn router_entry(service: &Service, module: &str, out: &mut String) {
    let name = &service.name;
    put(
        out,
        &format!(
            "/// Puts a [`{name}`] into a router.\n#[derive(Debug)]\npub struct {name}Server<T> {{ \
         service: T }}\n\
         impl<T> {name}Server<T> {{\n/// Wraps it.\npub fn new(service: T) -> Self {{ Self {{ \
         service }} }}\n}}\n\
         impl<T: {name}> proto_link::Service for {name}Server<T> {{\n\
         fn methods(&self) -> &'static [&'static proto_link::MethodSpec] {{ {module}::METHODS }}\n\
         fn call<'a>(&'a self, method: &'static proto_link::MethodSpec, peer: &'a \
         proto_link::Peer, request: bytes::Bytes, out: &'a mut proto_link::Responder) -> \
         proto_link::CallFuture<'a> {{\nBox::pin(async move {{\nmatch method.path {{"
        ),
    );
    for method in &service.methods {
        let call = &method.name;
        let path = format!(
            "/{}.{}/{}",
            service.package, service.proto_name, method.proto_name
        );
        let body = if method.server_streaming {
            format!("self.service.{call}(peer, request, proto_link::Sink::new(out)).await")
        } else {
            format!(
                "let answer = self.service.{call}(peer, request).await?; out.send(&answer).await"
            )
        };
        put(
            out,
            &format!(
                "\"{path}\" => {{ let request: {} = proto_link::decode_request(&request)?; {body} }}",
                method.input_type
            ),
        );
    }
    out.push_str(
        "_ => Err(proto_link::LinkStatus::unimplemented(\"no such method\")),\n}\n})\n}\n}\n",
    );
}

fn put(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// `EnrolService` → `enrol_service`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for (i, c) in name.char_indices() {
        if c.is_ascii_uppercase() && i > 0 {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
