import type { Command } from 'commander'
import { type OutputOptions, print } from '../output.js'
import { processFile } from '../process-file.js'
import { type RunningPod, renderScreen } from '../start/screen.js'
import { listenForStop } from '../start/stop-request.js'

export function runCommands(program: Command): void {
  program
    .command('start')
    .description('Runs the whole pod: web, worker and, without DATABASE_URL, a database.')
    .option('--json', 'print JSON, and log as JSON')
    .addHelpText('after', '\nExample:\n  PORT=3001 DATA_DIR=var/second pod start')
    .action(start)

  program
    .command('web')
    .description('Runs only a web process, on the configured database and queue.')
    .option('--json', 'log as JSON')
    .addHelpText('after', '\nExample:\n  DATABASE_URL=postgres://pod@db.example/pod pod web')
    .action(async (options: OutputOptions) => {
      setLogFormat(options)
      await import(processFile('src/server').href)
    })

  program
    .command('worker')
    .description('Runs only a worker process, on the configured database and queue.')
    .option('--queues <names>', 'only these queues, separated by commas')
    .option('--json', 'log as JSON')
    .addHelpText('after', '\nExample:\n  pod worker --queues inbound,inbound-private')
    .action(async (options: OutputOptions & { queues?: string }) => {
      setLogFormat(options)
      if (options.queues !== undefined) process.env['WORKER_QUEUES'] = options.queues
      await import(processFile('workers/main').href)
    })
}

async function start(options: OutputOptions): Promise<void> {
  setLogFormat(options)
  const stop = listenForStop()
  // Imported here, because the processes "web" and "worker" do not need these modules.
  const [{ readConfig }, { startPod }] = await Promise.all([
    import('../../src/config/config.js'),
    import('../start/start-pod.js'),
  ])
  await startPod(readConfig(process.env), stop, (pod) => {
    print(options, summaryOf(pod), renderScreen(pod, process.stdout.isTTY === true && !process.env['NO_COLOR']))
  })
}

/** The processes read their settings from the environment. */
function setLogFormat(options: OutputOptions): void {
  if (options.json) process.env['LOG_FORMAT'] = 'json'
}

function summaryOf({ config, databasePid, web, worker, warnings }: RunningPod) {
  return {
    ready: true,
    url: config.url,
    address: web.address,
    admin: { web: web.admin, worker: worker.admin },
    database: config.databaseUrl === undefined ? 'embedded' : 'configured',
    queue: config.redisUrl === undefined ? 'postgresql' : 'redis',
    pids: { web: web.pid, worker: worker.pid, database: databasePid ?? null },
    warnings,
  }
}
