//! `metalmesh partition`.

use anyhow::Result;
use clap::{Args, Subcommand};
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{
    DnsServer, Meta, NtpServer, Partition, PartitionBootConfiguration, PartitionServiceGetRequest,
    PartitionServiceListRequest,
};

use super::{given, label_patch, server_lock};
use crate::app::App;
use crate::output::print_table;
use crate::show::{REQUIRE_BMC_NONCE, UPLINKS};
use crate::text::labels;

/// The address that clears a list of servers in an update: the contract cannot tell an empty list
/// from none.
const NO_SERVER: &str = "0.0.0.0";

#[derive(Debug, Subcommand)]
pub(crate) enum PartitionCommand {
    /// Create a partition.
    Create {
        /// Id of the partition.
        id: String,
        #[command(flatten)]
        fields: PartitionFieldArgs,
    },
    /// List partitions.
    #[command(visible_alias = "list")]
    Ls,
    /// Show a partition.
    #[command(visible_alias = "describe")]
    Show {
        /// Id of the partition.
        id: String,
    },
    /// Change a partition.
    Update {
        /// Id of the partition.
        id: String,
        #[command(flatten)]
        fields: PartitionFieldArgs,
        #[command(flatten)]
        emptied: PartitionClearArgs,
    },
    /// Delete an unused partition.
    #[command(visible_alias = "delete")]
    Rm {
        /// Id of the partition.
        id: String,
    },
    /// Show the number of machines by size: free, waiting, allocated, faulty.
    Capacity {
        /// Id of the partition.
        partition: Option<String>,
        /// Only machines of this size.
        #[arg(long)]
        size: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct PartitionFieldArgs {
    /// Description, free text.
    #[arg(long)]
    description: Option<String>,
    /// Address of a DNS server of the machines. Repeatable, at most three.
    #[arg(long = "dns", value_name = "IP")]
    dns: Vec<String>,
    /// Time server of the machines. Repeatable, at most ten.
    #[arg(long = "ntp", value_name = "HOST")]
    ntp: Vec<String>,
    /// URL of the kernel that machines boot from the network.
    #[arg(long, value_name = "URL", requires = "boot_image")]
    boot_kernel: Option<String>,
    /// URL of the initramfs of that kernel.
    #[arg(long, value_name = "URL", requires = "boot_kernel")]
    boot_image: Option<String>,
    /// Command line of that kernel.
    #[arg(
        long,
        value_name = "TEXT",
        requires = "boot_kernel",
        default_value = ""
    )]
    boot_cmdline: String,
    /// Address of a management service, host:port. Repeatable.
    #[arg(long = "mgmt", value_name = "HOST:PORT")]
    mgmt: Vec<String>,
    /// Set a label (NAME=VALUE), or on update remove it (NAME-). Repeatable.
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    /// Require machines to join with the nonce that the BMC agent writes into the asset tag of their
    /// BMC, where it replaces any other text.
    #[arg(long, value_name = "BOOL")]
    require_bmc_nonce: Option<bool>,
    /// Number of confirmed cables that a machine needs before it can be allocated; by default the
    /// number of its NICs that hear a leaf. To unset: --label metalmesh.dev/uplinks-
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(1..=64))]
    uplinks: Option<u8>,
}

/// Lists that an update clears.
#[derive(Debug, Args)]
pub(crate) struct PartitionClearArgs {
    /// Remove all DNS servers.
    #[arg(long, conflicts_with = "dns")]
    no_dns: bool,
    /// Remove all time servers.
    #[arg(long, conflicts_with = "ntp")]
    no_ntp: bool,
    /// Remove all addresses of management services.
    #[arg(long, conflicts_with = "mgmt")]
    no_mgmt: bool,
}

impl PartitionClearArgs {
    /// Replaces the lists to clear by the address that clears them.
    fn fill(&self, request: &mut admin::PartitionServiceUpdateRequest) {
        if self.no_dns {
            let ip = NO_SERVER.to_owned();
            request.dns_servers = vec![DnsServer { ip }];
        }
        if self.no_ntp {
            let address = NO_SERVER.to_owned();
            request.ntp_servers = vec![NtpServer { address }];
        }
        if self.no_mgmt {
            request.mgmt_service_addresses = vec![NO_SERVER.to_owned()];
        }
    }
}

impl PartitionFieldArgs {
    /// Label flags: those of `--label`, and the labels that other flags set.
    fn labels(&self) -> Vec<String> {
        let demand = self.require_bmc_nonce;
        let demand = demand.map(|demand| format!("{REQUIRE_BMC_NONCE}={demand}"));
        let uplinks = self.uplinks.map(|number| format!("{UPLINKS}={number}"));
        let labels = self.labels.iter().cloned();
        labels.chain(demand).chain(uplinks).collect()
    }

    fn boot(&self) -> Option<PartitionBootConfiguration> {
        let (kernel, image) = (self.boot_kernel.clone()?, self.boot_image.clone()?);
        Some(PartitionBootConfiguration {
            image_url: image,
            kernel_url: kernel,
            commandline: self.boot_cmdline.clone(),
        })
    }

    fn dns(&self) -> Vec<DnsServer> {
        self.dns
            .iter()
            .map(|ip| DnsServer { ip: ip.clone() })
            .collect()
    }

    fn ntp(&self) -> Vec<NtpServer> {
        self.ntp
            .iter()
            .map(|address| NtpServer {
                address: address.clone(),
            })
            .collect()
    }
}

pub(crate) async fn run(app: &App, command: PartitionCommand) -> Result<()> {
    match command {
        PartitionCommand::Create { id, fields } => {
            let partition = Partition {
                id,
                meta: Some(Meta {
                    labels: labels(&fields.labels())?,
                    ..Default::default()
                }),
                description: fields.description.clone().unwrap_or_default(),
                boot_configuration: fields.boot(),
                dns_servers: fields.dns(),
                ntp_servers: fields.ntp(),
                mgmt_service_addresses: fields.mgmt.clone(),
            };
            let request = admin::PartitionServiceCreateRequest {
                partition: Some(partition),
            };
            let answer = app
                .client
                .admin_partitions()
                .create(request)
                .await?
                .into_inner();
            app.output.one(&given(answer.partition)?)
        }
        PartitionCommand::Ls => {
            let request = PartitionServiceListRequest { query: None };
            let answer = app.client.partitions().list(request).await?.into_inner();
            app.output.list(&answer.partitions)
        }
        PartitionCommand::Show { id } => {
            let request = PartitionServiceGetRequest { id };
            let answer = app.client.partitions().get(request).await?.into_inner();
            app.output.one(&given(answer.partition)?)
        }
        PartitionCommand::Update {
            id,
            fields,
            emptied,
        } => update(app, id, &fields, &emptied).await,
        PartitionCommand::Rm { id } => {
            let request = admin::PartitionServiceDeleteRequest { id };
            let answer = app
                .client
                .admin_partitions()
                .delete(request)
                .await?
                .into_inner();
            app.output.one(&given(answer.partition)?)
        }
        PartitionCommand::Capacity { partition, size } => capacity(app, partition, size).await,
    }
}

async fn update(
    app: &App,
    id: String,
    fields: &PartitionFieldArgs,
    emptied: &PartitionClearArgs,
) -> Result<()> {
    let mut request = admin::PartitionServiceUpdateRequest {
        id,
        update_meta: server_lock(),
        description: fields.description.clone(),
        boot_configuration: fields.boot(),
        dns_servers: fields.dns(),
        ntp_servers: fields.ntp(),
        mgmt_service_addresses: fields.mgmt.clone(),
        labels: label_patch(&fields.labels())?,
    };
    emptied.fill(&mut request);
    let answer = app
        .client
        .admin_partitions()
        .update(request)
        .await?
        .into_inner();
    app.output.one(&given(answer.partition)?)
}

async fn capacity(app: &App, id: Option<String>, size: Option<String>) -> Result<()> {
    let project = app.project().await?;
    let request = admin::PartitionServiceCapacityRequest { id, size, project };
    let answer = app
        .client
        .admin_partitions()
        .capacity(request)
        .await?
        .into_inner();
    let name = "metalstack.admin.v2.PartitionServiceCapacityResponse";
    app.output.message(name, &answer, |answer| {
        let rows = answer.partition_capacity.iter().flat_map(|partition| {
            partition.machine_size_capacities.iter().map(|c| {
                let numbers = [
                    c.total,
                    c.free,
                    c.waiting,
                    c.allocated,
                    c.phoned_home,
                    c.faulty,
                    c.other,
                ];
                let mut row = vec![partition.partition.clone(), c.size.clone()];
                row.extend(numbers.map(|number| number.to_string()));
                row
            })
        });
        let titles = [
            "partition",
            "size",
            "total",
            "free",
            "waiting",
            "allocated",
            "phoned home",
            "faulty",
            "other",
        ];
        print_table(&titles, rows);
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::show::{bmc_nonce, uplinks};

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        fields: PartitionFieldArgs,
    }

    fn partition(flags: &[&str]) -> Partition {
        let line = Line::parse_from([&["metalmesh"], flags].concat());
        Partition {
            meta: Some(Meta {
                labels: labels(&line.fields.labels()).unwrap(),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    #[test]
    fn demands_of_a_partition_are_labels() {
        let label = "--label=rack=2";
        for (flags, shown, labels) in [
            (&[label][..], "-", "rack=2"),
            (
                &[label, "--require-bmc-nonce=true"],
                "required",
                "metalmesh.dev/require-bmc-nonce=true,rack=2",
            ),
            (
                &["--require-bmc-nonce", "false"],
                "-",
                "metalmesh.dev/require-bmc-nonce=false",
            ),
        ] {
            let made = partition(flags);
            assert_eq!(bmc_nonce(&made), shown, "{flags:?}");
            let text = crate::text::show_labels(made.meta.as_ref());
            assert_eq!(text, labels, "{flags:?}");
        }
        let two = partition(&["--uplinks", "2"]);
        assert_eq!(uplinks(&two), "2");
        assert_eq!(uplinks(&partition(&[])), "-");
        for wrong in ["0", "65", "two"] {
            Line::try_parse_from(["metalmesh", "--uplinks", wrong]).unwrap_err();
        }
        let wrong = Line::try_parse_from(["metalmesh", "--require-bmc-nonce", "yes"]);
        wrong.unwrap_err();
    }
}
