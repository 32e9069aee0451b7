import { isUrl } from '../../protocol/is-url.js'
import { TakeOverError } from '../take-over-error.js'
import { openMysqlSource } from './mysql-source.js'
import { openPostgresSource } from './postgres-source.js'
import type { Source } from './source.js'

/** Opens the database of the old pod by its URL. Tests give a shorter time in milliseconds. */
export async function openSource(url: string, maxTransactionMs?: number): Promise<Source> {
  if (/^postgres(ql)?:\/\//.test(url) && isUrl(url)) return openPostgresSource(url, maxTransactionMs)
  if (url.startsWith('mysql://') && isUrl(url)) return openMysqlSource(url, maxTransactionMs)
  throw new TakeOverError('--from must be an address that begins with postgres:// or mysql://.')
}
