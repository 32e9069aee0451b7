import { createHash } from 'node:crypto'
import type { SecretOwner, Secrets } from '../../services/services.js'
import type { SourceTable } from '../source/source-tables.js'
import type { ChangeField, RowChanges } from './copy-text.js'
import { readYaml } from './read-yaml.js'

/** The owner of each sealed column: private keys and TOTP secrets are sealed as the accounts of this pod have them. */
const OWNERS: Readonly<Record<string, (id: number) => SecretOwner>> = {
  serialized_private_key: (id) => `user ${id}`,
  plain_otp_secret: (id) => `totp ${id}`,
  encrypted_password: (id) => `take-over ${id}`,
  otp_backup_codes: (id) => `take-over ${id}`,
}

/** Staged instead of YAML that cannot be read. */
const UNREADABLE = 'false'

/** The columns that are parsed, sealed or hashed before they reach the staging tables. */
export function createRowChanges(table: SourceTable, secrets: Secrets): RowChanges {
  const names = Object.keys(table.columns)
  const fields = new Map<number, ChangeField>()
  for (const [index, name] of names.entries()) {
    const change = changeOf(table, name, secrets)
    if (change !== undefined) fields.set(index, change)
  }
  return { key: names.indexOf(table.key), fields }
}

function changeOf(table: SourceTable, name: string, secrets: Secrets): ChangeField | undefined {
  switch (table.columns[name]) {
    case 'json':
      return stageJson
    case 'yaml':
      return stageYaml
    case 'hashed':
      return (text) => (text === '' ? null : bytes(createHash('sha256').update(text).digest()))
    case 'sealed': {
      const ownerOf = OWNERS[name]
      if (ownerOf === undefined) throw new Error(`The column ${name} has no owner for its seal.`)
      return (text, id) => (text === '' ? null : bytes(secrets.encrypt(text, ownerOf(id))))
    }
    default:
      return undefined
  }
}

/** jsonb has no NUL; a text with one cannot come from PostgreSQL. */
function stageJson(text: string): string | null {
  try {
    return JSON.stringify(JSON.parse(text)).replaceAll('\\u0000', '\ufffd')
  } catch {
    return null
  }
}

function stageYaml(text: string): string | null {
  if (text.trim() === '') return null
  const value = readYaml(text)
  return value === undefined ? UNREADABLE : JSON.stringify(value).replaceAll('\\u0000', '\ufffd')
}

function bytes(content: Buffer): string {
  return `\\x${content.toString('hex')}`
}
