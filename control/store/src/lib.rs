//! openraft and RocksDB under the state machine: durable before acknowledged.
