//! `metalmesh size images`.

use anyhow::{Context as _, Result};
use clap::Subcommand;
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{ImageConstraint, SizeImageConstraintServiceTryRequest};

use super::{given, server_lock};
use crate::app::App;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say which versions of an operating system the machines of a size can run.
    Create {
        size: String,
        /// For example `debian=>= 12.0`; operating systems that are not named are allowed.
        #[arg(long = "allow", value_name = "OS=VERSIONS", required = true)]
        allow: Vec<String>,
        #[arg(long)]
        name: Option<String>,
        #[arg(long)]
        description: Option<String>,
    },
    /// List what sizes can run.
    #[command(visible_alias = "list")]
    Ls,
    /// Show what a size can run.
    #[command(visible_alias = "describe")]
    Show { size: String },
    /// Whether machines of a size can run an image.
    Try { size: String, image: String },
    /// Change what a size can run.
    Update {
        size: String,
        /// As with create; replaces all.
        #[arg(long = "allow", value_name = "OS=VERSIONS")]
        allow: Vec<String>,
        #[arg(long)]
        name: Option<String>,
        #[arg(long)]
        description: Option<String>,
    },
    /// Let machines of a size run everything again.
    #[command(visible_alias = "delete")]
    Rm { size: String },
}

pub(crate) async fn run(app: &App, command: Command) -> Result<()> {
    let mut all = app.client.admin_size_image_constraints();
    let changed = match command {
        Command::Create {
            size,
            allow,
            name,
            description,
        } => {
            let request = admin::SizeImageConstraintServiceCreateRequest {
                size,
                image_constraints: constraints(&allow)?,
                meta: None,
                name,
                description,
            };
            all.create(request)
                .await?
                .into_inner()
                .size_image_constraint
        }
        Command::Ls => {
            let request = admin::SizeImageConstraintServiceListRequest { query: None };
            let found = all.list(request).await?.into_inner();
            return app.output.list(&found.size_image_constraints);
        }
        Command::Show { size } => {
            let request = admin::SizeImageConstraintServiceGetRequest { size };
            all.get(request).await?.into_inner().size_image_constraint
        }
        Command::Try { size, image } => {
            let request = SizeImageConstraintServiceTryRequest { size, image };
            app.client.size_image_constraints().r#try(request).await?;
            return Ok(());
        }
        Command::Update {
            size,
            allow,
            name,
            description,
        } => {
            let request = admin::SizeImageConstraintServiceUpdateRequest {
                size,
                update_meta: server_lock(),
                image_constraints: constraints(&allow)?,
                name,
                description,
            };
            all.update(request)
                .await?
                .into_inner()
                .size_image_constraint
        }
        Command::Rm { size } => {
            let request = admin::SizeImageConstraintServiceDeleteRequest { size };
            all.delete(request)
                .await?
                .into_inner()
                .size_image_constraint
        }
    };
    app.output.one(&given(changed)?)
}

fn constraints(flags: &[String]) -> Result<Vec<ImageConstraint>> {
    let one = |flag: &String| {
        let (image, versions) = flag.split_once('=').with_context(|| {
            format!("{flag:?} is not OS=VERSIONS, for example \"debian=>= 12.0\"")
        })?;
        Ok(ImageConstraint {
            image: image.to_owned(),
            semver_match: versions.trim().to_owned(),
        })
    };
    flags.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_equals_sign_parts() {
        let flags = ["debian=>= 12.0".to_owned(), "ubuntu=24.04".to_owned()];
        let read = constraints(&flags).unwrap();
        let read: Vec<_> = read
            .iter()
            .map(|it| (it.image.as_str(), it.semver_match.as_str()))
            .collect();
        assert_eq!(read, [("debian", ">= 12.0"), ("ubuntu", "24.04")]);
        assert!(constraints(&["debian".to_owned()]).is_err());
    }
}
