//! `metalmesh size images`.

use anyhow::{Context as _, Result};
use clap::Subcommand;
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{ImageConstraint, SizeImageConstraintServiceTryRequest};

use super::{given, server_lock};
use crate::app::App;

#[derive(Debug, Subcommand)]
pub(crate) enum SizeImagesCommand {
    /// Limit the versions of operating systems that machines of a size can run.
    Create {
        /// Id of the size.
        size: String,
        /// Allowed versions, such as `debian=>= 12.0`; other operating systems stay allowed.
        /// Repeatable.
        #[arg(long = "allow", value_name = "OS=VERSIONS", required = true)]
        allow: Vec<String>,
        /// Display name.
        #[arg(long)]
        name: Option<String>,
        /// Description, free text.
        #[arg(long)]
        description: Option<String>,
    },
    /// List the limits of all sizes.
    #[command(visible_alias = "list")]
    Ls,
    /// Show the limits of a size.
    #[command(visible_alias = "describe")]
    Show {
        /// Id of the size.
        size: String,
    },
    /// Check that machines of a size can run an image.
    Try {
        /// Id of the size.
        size: String,
        /// Id of the image.
        image: String,
    },
    /// Change the limits of a size.
    Update {
        /// Id of the size.
        size: String,
        /// Allowed versions, as with create; replaces all limits.
        #[arg(long = "allow", value_name = "OS=VERSIONS")]
        allow: Vec<String>,
        /// Display name.
        #[arg(long)]
        name: Option<String>,
        /// Description, free text.
        #[arg(long)]
        description: Option<String>,
    },
    /// Remove the limits of a size.
    #[command(visible_alias = "delete")]
    Rm {
        /// Id of the size.
        size: String,
    },
}

pub(crate) async fn run(app: &App, command: SizeImagesCommand) -> Result<()> {
    let mut all = app.client.admin_size_image_constraints();
    let changed = match command {
        SizeImagesCommand::Create {
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
        SizeImagesCommand::Ls => {
            let request = admin::SizeImageConstraintServiceListRequest { query: None };
            let found = all.list(request).await?.into_inner();
            return app.output.list(&found.size_image_constraints);
        }
        SizeImagesCommand::Show { size } => {
            let request = admin::SizeImageConstraintServiceGetRequest { size };
            all.get(request).await?.into_inner().size_image_constraint
        }
        SizeImagesCommand::Try { size, image } => {
            let request = SizeImageConstraintServiceTryRequest { size, image };
            app.client.size_image_constraints().r#try(request).await?;
            return Ok(());
        }
        SizeImagesCommand::Update {
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
        SizeImagesCommand::Rm { size } => {
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
            .map(|constraint| (constraint.image.as_str(), constraint.semver_match.as_str()))
            .collect();
        assert_eq!(read, [("debian", ">= 12.0"), ("ubuntu", "24.04")]);
        assert!(constraints(&["debian".to_owned()]).is_err());
    }
}
