import type { Config } from '../../config/config.js'

/** The addresses at which the old pod has named pictures of its own. */
export function ownPhotoPaths({ host }: Pick<Config, 'host'>): readonly string[] {
  const hosts = [host, `www.${host}`]
  // A pod that has begun under another port, or named the default one.
  const withPorts = hosts.flatMap((name) =>
    name.includes(':') ? [name] : [name, `${name}:80`, `${name}:443`, `${name}:3000`],
  )
  return withPorts.flatMap((name) => [`http://${name}/uploads/images/`, `https://${name}/uploads/images/`])
}
