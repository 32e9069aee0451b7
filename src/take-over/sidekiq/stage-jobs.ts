import type pg from 'pg'
import { readSidekiqJobs, type SidekiqJob } from '../../jobs/queues/sidekiq-jobs.js'

/** Jobs that this pod continues. Those with other names are counted only: their arguments may hold tokens and addresses. */
const CARRIED_JOBS = [
  'ReceivePublic',
  'ReceivePrivate',
  'SendPublic',
  'SendPrivate',
  'DeferredDispatch',
  'ProcessPhoto',
] as const

export type CarriedJobName = (typeof CARRIED_JOBS)[number]

export interface StagedJob {
  readonly id: string
  readonly name: CarriedJobName
  readonly args: readonly unknown[]
  readonly createdAt: Date
  readonly dueAt: Date | null
}

/** Copies the jobs into a staging table, each id once. What an earlier run has copied stays. */
export async function stageJobs(session: pg.Client, url: string): Promise<void> {
  await session.query(`
    create unlogged table if not exists take_over.sidekiq_jobs (
      id text collate "C" primary key,
      name text collate "C" not null,
      args text,
      created_at timestamptz(3) not null,
      due_at timestamptz(3),
      done boolean not null default false,
      -- Why the job, or a part of it, was not carried over, with its subject.
      fault text,
      lost text[] not null default '{}'
    );
    create index if not exists sidekiq_jobs_next on take_over.sidekiq_jobs (created_at, id) where not done and args is not null`)
  await readSidekiqJobs(url, (jobs) => insertJobs(session, jobs))
}

async function insertJobs(session: pg.Client, jobs: readonly SidekiqJob[]): Promise<void> {
  const isCarried = ({ name }: SidekiqJob) => (CARRIED_JOBS as readonly string[]).includes(name)
  await session.query(
    `insert into take_over.sidekiq_jobs (id, name, args, created_at, due_at)
     select * from unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::timestamptz[]) on conflict do nothing`,
    [
      jobs.map(({ id }) => id),
      jobs.map(({ name }) => name),
      jobs.map((job) => (isCarried(job) ? JSON.stringify(job.args) : null)),
      jobs.map(({ createdAt }) => createdAt),
      jobs.map(({ dueAt }) => dueAt ?? null),
    ],
  )
}

/** The oldest job that is not done yet. */
export async function findNextJob(session: pg.Client): Promise<StagedJob | undefined> {
  const { rows } = await session.query<Omit<StagedJob, 'args'> & { readonly args: string }>(
    `select id, name, args, created_at as "createdAt", due_at as "dueAt" from take_over.sidekiq_jobs
     where not done and args is not null order by created_at, id limit 1`,
  )
  const [row] = rows
  return row && { ...row, args: JSON.parse(row.args) }
}

/** A part of a job that was not carried over: its subject, as hosts, and the reason. */
export interface JobFault {
  readonly fault: string
  readonly lost: readonly string[]
}

export async function markJobDone(session: pg.Client, id: string, found: JobFault | undefined): Promise<void> {
  await session.query('update take_over.sidekiq_jobs set done = true, fault = $2, lost = $3 where id = $1', [
    id,
    found?.fault ?? null,
    found?.lost ?? [],
  ])
}

export interface CarriedJobs {
  /** Jobs by class; a job without all of its recipients is among them. */
  readonly carried: Readonly<Record<string, number>>
  readonly dropped: readonly {
    readonly name: string
    readonly fault: string
    readonly count: number
    /** Hosts, or ids of jobs. */
    readonly examples: readonly string[]
  }[]
}

/** The outcomes of the staged jobs. */
export async function summariseJobs(session: pg.Client): Promise<CarriedJobs> {
  const { rows: carried } = await session.query<{ name: string; count: number }>(
    `select name, count(*)::float as count from take_over.sidekiq_jobs
     where done and (fault is null or lost <> '{}') group by name order by name`,
  )
  const { rows: dropped } = await session.query<CarriedJobs['dropped'][number]>(
    `select name, coalesce(fault, 'not carried over') as fault, count(*)::float as count,
       (array_agg(example order by example))[1:20] as examples
     from (
       select distinct name, fault, coalesce(item, id) as example from take_over.sidekiq_jobs
       left join lateral unnest(lost) as item on true where args is null or fault is not null
     ) as lost group by name, fault order by name, fault`,
  )
  return { carried: Object.fromEntries(carried.map(({ name, count }) => [name, count])), dropped }
}
