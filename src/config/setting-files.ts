import { readFileSync } from 'node:fs'
import { messageOf } from '../errors/thrown.js'

/** Settings that may be read from a file, named by the setting with `_FILE` appended: how container platforms pass secrets. */
const FILE_SETTINGS = [
  'SECRET_KEY',
  'DATABASE_URL',
  'DATABASE_READ_URL',
  'REDIS_URL',
  'SMTP_URL',
  'S3_ACCESS_KEY_ID',
  'S3_SECRET_ACCESS_KEY',
  'BACKUP_S3_ACCESS_KEY_ID',
  'BACKUP_S3_SECRET_ACCESS_KEY',
] as const

/** The environment with the values of all setting files. Faults name files that cannot be read, and settings given twice. */
export function withSettingFiles(environment: NodeJS.ProcessEnv, faults: string[]): NodeJS.ProcessEnv {
  const values: Record<string, string> = {}
  for (const name of FILE_SETTINGS) {
    const path = environment[`${name}_FILE`]
    if (!path) continue
    if (environment[name]) {
      faults.push(`${name} and ${name}_FILE are both set: remove one of them.`)
      continue
    }
    try {
      const text = readFileSync(path, 'utf8').trim()
      if (text === '') faults.push(`The file ${path}, which ${name}_FILE names, is empty.`)
      else values[name] = text
    } catch (error) {
      faults.push(`The file ${path}, which ${name}_FILE names, cannot be read: ${messageOf(error)}.`)
    }
  }
  return { ...environment, ...values }
}
