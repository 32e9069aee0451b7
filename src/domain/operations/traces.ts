import { findTraceSteps, type TraceStep } from '../../persistence/operations/traces.js'
import type { Services } from '../../services/services.js'
import { type Actor, requirePower } from '../moderation/actor.js'
import { Refusal } from '../refusals.js'

/** The consequences of a request or a received message, in the order of the pipeline. The id is that of the header `X-Request-Id`. */
export async function readTrace({ db }: Pick<Services, 'db'>, actor: Actor, id: string): Promise<readonly TraceStep[]> {
  requirePower(actor, 'administration')
  const trace = id.toLowerCase().replaceAll('-', '')
  const steps = /^[0-9a-f]{32}$/.test(trace) ? await findTraceSteps(db, trace) : []
  if (steps.length === 0) throw new Refusal('trace_not_found', 'No row belongs to this request.')
  return steps
}
