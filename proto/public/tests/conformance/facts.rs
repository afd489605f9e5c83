//! All that must be equal about a contract, as text by name. Left out: comments, file options
//! (they are for other languages) and the order of declarations.

use std::collections::BTreeMap;
use std::fmt;

use prost_reflect::{
    Cardinality, DescriptorPool, DynamicMessage, EnumDescriptor, ExtensionDescriptor,
    FieldDescriptor, Kind, MessageDescriptor, SerializeOptions, ServiceDescriptor,
};

/// The facts of `metalstack.*` in a pool.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) all: BTreeMap<String, String>,
    pub(crate) services: usize,
    pub(crate) methods: usize,
    pub(crate) messages: usize,
    pub(crate) enums: usize,
    pub(crate) fields: usize,
    values: usize,
    oneofs: usize,
    extensions: usize,
    rules: usize,
    strings: usize,
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} services, {} methods, {} messages, {} enums with {} values ({} with a string), \
             {} fields ({} with rules), {} oneofs, {} extensions",
            self.services,
            self.methods,
            self.messages,
            self.enums,
            self.values,
            self.strings,
            self.fields,
            self.rules,
            self.oneofs,
            self.extensions
        )
    }
}

fn ours(name: &str) -> bool {
    name.starts_with("metalstack.")
}

impl Facts {
    pub(crate) fn read(pool: &DescriptorPool) -> Self {
        let mut facts = Self::default();
        for file in pool.files().filter(|f| ours(f.package_name())) {
            let mut imports: Vec<_> = file.dependencies().map(|d| d.name().to_owned()).collect();
            imports.sort();
            let syntax = format!(
                "{:?} {} imports {imports:?}",
                file.syntax(),
                file.package_name()
            );
            facts.add(format!("file {}", file.name()), syntax);
        }
        pool.services()
            .filter(|s| ours(s.full_name()))
            .for_each(|s| facts.service(&s));
        let messages = pool
            .all_messages()
            .filter(|m| ours(m.full_name()) && !m.is_map_entry());
        messages.for_each(|m| facts.message(&m));
        pool.all_enums()
            .filter(|e| ours(e.full_name()))
            .for_each(|e| facts.enumeration(&e));
        pool.all_extensions()
            .filter(|e| ours(e.full_name()))
            .for_each(|e| facts.extension(&e));
        facts
    }

    fn add(&mut self, name: String, fact: String) {
        assert!(
            self.all.insert(name.clone(), fact).is_none(),
            "{name} twice"
        );
    }

    fn service(&mut self, service: &ServiceDescriptor) {
        self.services += 1;
        self.add(
            format!("service {}", service.full_name()),
            options(&service.options()),
        );
        for method in service.methods() {
            self.methods += 1;
            let stream = |yes: bool| if yes { "stream " } else { "" };
            let fact = format!(
                "({}{}) returns ({}{}) {}",
                stream(method.is_client_streaming()),
                method.input().full_name(),
                stream(method.is_server_streaming()),
                method.output().full_name(),
                options(&method.options())
            );
            self.add(format!("method {}", method.full_name()), fact);
        }
    }

    fn message(&mut self, message: &MessageDescriptor) {
        self.messages += 1;
        let raw = message.descriptor_proto();
        let reserved = format!("{:?} {:?}", raw.reserved_range, raw.reserved_name);
        let fact = format!("{} reserved {reserved}", options(&message.options()));
        self.add(format!("message {}", message.full_name()), fact);
        for oneof in message.oneofs().filter(|o| !o.is_synthetic()) {
            self.oneofs += 1;
            self.add(
                format!("oneof {}", oneof.full_name()),
                options(&oneof.options()),
            );
        }
        for field in message.fields() {
            self.fields += 1;
            let text = options(&field.options());
            self.rules += usize::from(text.contains("buf.validate.field"));
            let oneof = field.containing_oneof().filter(|o| !o.is_synthetic());
            let fact = format!(
                "= {} {:?} {} presence {} oneof {:?} packed {} json {} {text}",
                field.number(),
                field.cardinality(),
                kind(&field),
                field.supports_presence(),
                oneof.map(|o| o.name().to_owned()),
                field.is_packed(),
                field.json_name(),
            );
            self.add(format!("field {}", field.full_name()), fact);
        }
    }

    fn enumeration(&mut self, enumeration: &EnumDescriptor) {
        self.enums += 1;
        let name = enumeration.full_name();
        self.add(format!("enum {name}"), options(&enumeration.options()));
        for value in enumeration.values() {
            self.values += 1;
            let text = options(&value.options());
            self.strings += usize::from(text.contains("enum_string_value"));
            let fact = format!("= {} {text}", value.number());
            self.add(format!("value {name}.{}", value.name()), fact);
        }
    }

    fn extension(&mut self, extension: &ExtensionDescriptor) {
        self.extensions += 1;
        let fact = format!(
            "extends {} = {} {:?} {:?} presence {} {}",
            extension.containing_message().full_name(),
            extension.number(),
            extension.cardinality(),
            extension.kind(),
            extension.supports_presence(),
            options(&extension.options())
        );
        self.add(format!("extension {}", extension.full_name()), fact);
    }
}

fn kind(field: &FieldDescriptor) -> String {
    match field.kind() {
        Kind::Message(entry) if field.is_map() => {
            let value = entry.map_entry_value_field();
            assert_eq!(value.cardinality(), Cardinality::Optional);
            format!(
                "map {:?} to {:?}",
                entry.map_entry_key_field().kind(),
                value.kind()
            )
        }
        kind => format!("{kind:?}"),
    }
}

/// Options as JSON: names of extensions in brackets, validation rules among them.
fn options(options: &DynamicMessage) -> String {
    let print = SerializeOptions::new().skip_default_fields(true);
    let value = options
        .serialize_with_options(serde_json::value::Serializer, &print)
        .unwrap();
    value.to_string()
}
