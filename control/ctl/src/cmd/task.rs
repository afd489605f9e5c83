//! `metalmesh task`.

use anyhow::Result;
use clap::Subcommand;
use proto_public::admin::v2 as admin;

use super::given;
use crate::app::App;

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// List background tasks, the newest first.
    #[command(visible_alias = "list")]
    Ls {
        /// Maximum number of tasks.
        #[arg(long, default_value_t = 100)]
        count: u32,
    },
    /// Show a task.
    #[command(visible_alias = "describe")]
    Show {
        /// Id of the task.
        id: String,
    },
    /// List the queues in which tasks wait.
    Queues,
    /// Cancel a task, or delete one that has ended.
    #[command(visible_alias = "delete")]
    Rm {
        /// Id of the task.
        id: String,
    },
}

pub(crate) async fn run(app: &App, command: TaskCommand) -> Result<()> {
    let mut tasks = app.client.admin_tasks();
    match command {
        TaskCommand::Ls { count } => {
            let request = admin::TaskServiceListRequest {
                count: Some(count),
                ..Default::default()
            };
            let found = tasks.list(request).await?.into_inner().tasks;
            app.output.list(&found)
        }
        TaskCommand::Show { id } => {
            let request = admin::TaskServiceGetRequest {
                task_id: id,
                queue: String::new(),
            };
            let found = tasks.get(request).await?.into_inner().task;
            app.output.one(&given(found)?)
        }
        TaskCommand::Queues => {
            let answer = tasks.queues(admin::TaskServiceQueuesRequest {}).await?;
            let queues = answer.into_inner().queues;
            if !app.output.is_table() {
                return app.output.value(&queues.into());
            }
            for queue in queues {
                outln!("{queue}");
            }
            Ok(())
        }
        TaskCommand::Rm { id } => {
            let request = admin::TaskServiceDeleteRequest {
                task_id: id,
                queue: String::new(),
            };
            tasks.delete(request).await?;
            Ok(())
        }
    }
}
