import type { Knex } from 'knex'
import type { Config } from '../../src/config/config.js'
import { type CheckResult, checkPassed, checkWarning } from '../../src/domain/operations/check-result.js'
import { messageOf } from '../../src/errors/thrown.js'
import { openDatabase } from '../../src/persistence/database/database.js'
import { WEB_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { compareReplicaPosition } from '../../src/persistence/database/read-replica.js'
import { hostAndPort } from '../explain-database-error.js'

/** Checks the replica of DATABASE_READ_URL. The pod runs without it, so problems are warnings. */
export async function checkReplica(
  primary: Knex,
  { databaseReadUrl: url }: Pick<Config, 'databaseReadUrl'>,
): Promise<readonly CheckResult[]> {
  if (url === undefined) return []
  const replica = openDatabase({ ...WEB_DATABASE_LIMITS, url, applicationName: 'pod doctor' })
  try {
    const { written, replayed } = await compareReplicaPosition(primary, replica)
    return [
      checkPassed('replica', `The replica follows the database, ${Math.max(0, written - replayed)} bytes behind.`),
    ]
  } catch (error) {
    return [
      checkWarning(
        'replica',
        `Lists are not read from ${hostAndPort(url)}: ${messageOf(error).replace(/\.?$/, '.')} Check DATABASE_READ_URL.`,
      ),
    ]
  } finally {
    await replica.destroy()
  }
}
