import type { Command } from 'commander'
import type { Power } from '../src/domain/accounts/role-powers.js'
import { type Actor, COMMAND_ACTOR, getActorByName } from '../src/domain/moderation/actor.js'
import type { Services } from '../src/services/services.js'
import type { OutputOptions } from './output.js'

/** The options of commands that the audit log records. */
export interface ActorOptions extends OutputOptions {
  readonly as?: string
  readonly reason?: string
}

export function withActorOptions(command: Command): Command {
  return command
    .option('--as <username>', 'act as this moderator or admin; default: the command itself')
    .option('--reason <text>', 'the reason, for the audit log')
}

/**
 * Options of an action that is always refused without a confirmation, if it would change anything. A dry run is such a refusal: the
 * program prints its preview as the result.
 */
export function withConfirmation(command: Command): Command {
  return command
    .option('--dry-run', 'only print what would change')
    .option('--yes', 'confirm')
    .hook('preAction', (_command, action) => {
      if (action.opts()['dryRun'] !== true) return
      action.setOptionValue('yes', undefined)
      action.setOptionValue('reason', action.opts()['reason'] ?? 'A dry run')
    })
}

export async function getActor(services: Pick<Services, 'db'>, { as }: ActorOptions, power: Power): Promise<Actor> {
  return as === undefined ? COMMAND_ACTOR : getActorByName(services, as, power)
}
