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
      const read = name === 'plain_otp_secret' ? readTotpSecret : (text: string) => text
      return (text, id) => {
        const secret = read(text)
        return secret === '' ? null : bytes(secrets.encrypt(secret, ownerOf(id)))
      }
    }
    default:
      return undefined
  }
}

/** A secret in Base32, in the form that this pod reads; empty if it is none. */
function readTotpSecret(text: string): string {
  const secret = text.toUpperCase().replace(/[\s=-]/g, '')
  return /^[A-Z2-7]*$/.test(secret) ? secret : ''
}

/** An escape of JSON. Of the escapes of halves of characters, `JSON.stringify` writes only those without the other half. */
const ESCAPE = /\\(?:u(0000|d[89a-f][0-9a-f]{2})|.)/g

/** JSON that jsonb accepts: it has no NUL and no half of a character. */
function writeJson(value: unknown): string {
  return JSON.stringify(value).replace(ESCAPE, (written, refused) => (refused === undefined ? written : '\ufffd'))
}

function stageJson(text: string): string | null {
  try {
    return writeJson(JSON.parse(text))
  } catch {
    return null
  }
}

function stageYaml(text: string): string | null {
  if (text.trim() === '') return null
  const content = readYaml(text)
  return content === undefined ? UNREADABLE : writeJson(content)
}

function bytes(content: Buffer): string {
  return `\\x${content.toString('hex')}`
}
